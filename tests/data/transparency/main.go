// Checks a tlog-proof of ours with Go's own packages for the checksum database: its signed notes, and its trees.
//
//	check PROOF LEAF LOG-VKEY WITNESS-VKEY [OLD-NOTE PATH…]
package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A cosigner signs a header with the time before the text, which the packages do not know.
type cosigner struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

func (c cosigner) Name() string    { return c.name }
func (c cosigner) KeyHash() uint32 { return c.hash }
func (c cosigner) Verify(text, signature []byte) bool {
	time := binary.BigEndian.Uint64(signature)
	said := fmt.Sprintf("cosignature/v1\ntime %d\n%s", time, text)
	return ed25519.Verify(c.key, []byte(said), signature[8:])
}

func newCosigner(vkey string) cosigner {
	parts := strings.SplitN(vkey, "+", 3)
	typed := must(base64.StdEncoding.DecodeString(parts[2]))
	if typed[0] != 4 || len(typed) != 33 {
		panic("no cosigner")
	}
	digest := sha256.Sum256(append([]byte(parts[0]+"\n"), typed...))
	if hex.EncodeToString(digest[:4]) != parts[1] {
		panic("another hash")
	}
	return cosigner{parts[0], binary.BigEndian.Uint32(digest[:4]), typed[1:]}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func treeOf(text string) tlog.Tree {
	lines := strings.Split(text, "\n")
	return tlog.Tree{N: must(strconv.ParseInt(lines[1], 10, 64)), Hash: must(tlog.ParseHash(lines[2]))}
}

func main() {
	proof := string(must(os.ReadFile(os.Args[1])))
	leaf := must(os.ReadFile(os.Args[2]))
	log := must(note.NewVerifier(os.Args[3]))
	head, signed, _ := strings.Cut(proof, "\n\n")
	opened := must(note.Open([]byte(signed), note.VerifierList(log, newCosigner(os.Args[4]))))
	tree := treeOf(opened.Text)
	lines := strings.Split(head, "\n")
	var path tlog.RecordProof
	for _, line := range lines[3:] {
		path = append(path, must(tlog.ParseHash(line)))
	}
	index := must(strconv.ParseInt(strings.TrimPrefix(lines[2], "index "), 10, 64))
	if err := tlog.CheckRecord(path, tree.N, tree.Hash, index, tlog.RecordHash(leaf)); err != nil {
		panic(err)
	}
	if len(os.Args) > 5 {
		old := treeOf(must(note.Open(must(os.ReadFile(os.Args[5])), note.VerifierList(log))).Text)
		var growth tlog.TreeProof
		for _, node := range os.Args[6:] {
			growth = append(growth, tlog.Hash(must(hex.DecodeString(node))))
		}
		if err := tlog.CheckTree(growth, tree.N, tree.Hash, old.N, old.Hash); err != nil {
			panic(err)
		}
	}
	fmt.Println(opened.Sigs[0].Name, len(opened.Sigs), tree.N)
}

"""The style sheet of a bundle's report: the tokens of the visual language, on screen, in print, light and dark."""

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--bg:#fff;--surface:#f6f7f8;--line:#dfe2e6;--strong:#848b95;--text:#16191d;--muted:#59616c;
--accent:#1b5bd0;--tint:#e8effc;--ok:#17703f;--bad:#b3261e;--bad-tint:#fdecea;--on:#fff;--c0:#0b7466;--c1:#a82d78;--c2:#6a41b5;
--c3:#3d6b12;--c4:#00657d;--c5:#8a4433;--person:#9c4a0c;--sub:#5d5e12;--grey:#4d5763;
--mono:ui-monospace,"SF Mono","Cascadia Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media screen and (prefers-color-scheme:dark){:root{--bg:#15181c;--surface:#1b1f24;--line:#30363e;--strong:#79828e;--text:#e7eaee;
--muted:#a2abb6;--accent:#7fabff;--tint:#1c2a45;--ok:#6fce97;--bad:#ff9a92;--bad-tint:#3a1f1e;--on:#14171b;--c0:#4ccdb9;
--c1:#f191c8;--c2:#bfa4ff;--c3:#a4d06b;--c4:#6cc7e0;--c5:#eea28f;--person:#f0a56c;--sub:#cfcf63;--grey:#aeb8c4}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:16px}
body{margin:0;background:var(--bg);color:var(--text);font:13px/20px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
font-variant-numeric:tabular-nums}
main,header,nav,footer{max-width:1040px;margin:0 auto;padding:0 24px}
header{padding-top:32px}
h1{font-size:20px;line-height:28px;margin:0 0 4px}
h2{font-size:15px;line-height:24px;margin:40px 0 8px;padding-top:8px;border-top:1px solid var(--line)}
h3{font-size:13px;margin:16px 0 4px}
p{margin:0 0 8px;max-width:76ch}
.muted,small,time{color:var(--muted);font-size:12px}
a{color:var(--accent)}
a:focus-visible,summary:focus-visible,.wide:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:4px}
code,.mono{font-family:var(--mono);font-size:12px;overflow-wrap:anywhere}
.verdict{display:flex;gap:12px;margin:16px 0;padding:12px 16px;border:1px solid var(--line);border-left:4px solid var(--ok);
border-radius:8px;background:var(--surface)}
.verdict svg{flex:none;width:20px;height:20px;color:var(--ok)}
.verdict p:last-child{margin:0}
.verdict.open{border-left-color:var(--strong)}.verdict.open svg{color:var(--strong)}
nav ul{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;margin:0;padding:8px 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:8px 0}
dt{color:var(--muted)}dd{margin:0;min-width:0;overflow-wrap:anywhere}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}
caption{text-align:left;color:var(--muted);font-size:12px;padding:0 0 4px}
th,td{border-bottom:1px solid var(--line);padding:4px 12px 4px 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}
th{color:var(--muted);font-weight:500;font-size:12px;white-space:nowrap}
.n{text-align:right;white-space:nowrap}
td.at,td.when{white-space:nowrap}td.brief{min-width:9em;overflow-wrap:break-word}
.words{white-space:pre-wrap;overflow-wrap:anywhere}
.who{display:inline-flex;align-items:center;gap:8px;font-weight:600}
.who b{flex:none;display:inline-grid;place-items:center;width:20px;height:20px;background:var(--c);color:var(--on);
font-size:12px;line-height:1;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.person{--c:var(--person)}.sub{--c:var(--sub)}.channel,.other{--c:var(--grey)}td .who{min-width:12em}
.who.session>b{border-radius:6px}.who.person>b{border-radius:50%}
.who.sub>b{clip-path:polygon(25% 0,75% 0,100% 25%,100% 75%,75% 100%,25% 100%,0 75%,0 25%)}
.who.channel>b{clip-path:polygon(25% 0,75% 0,100% 50%,75% 100%,25% 100%,0 50%)}
.who.other>b{border-radius:4px}
.s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}.s4{--c:var(--c4)}.s5{--c:var(--c5)}.s6{--c:var(--grey)}
.talk{list-style:none;margin:0;padding:0}
.talk li{padding:12px 0;border-bottom:1px solid var(--line)}
.talk .words{margin:4px 0 0 28px;padding-left:12px;border-left:2px solid var(--c,var(--line));max-width:80ch}
.line{display:flex;flex-wrap:wrap;gap:4px 8px;align-items:center}
.line .place{margin-left:auto}
.gone{color:var(--muted);font-style:italic}
.bad{color:var(--bad)}
.more{background:var(--tint);padding:8px 12px;border-radius:6px;margin:8px 0}
figure{margin:8px 0;overflow-x:auto}figure svg{max-width:100%;height:auto}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font:12px/18px var(--mono)}
.columns{columns:2;column-gap:32px}
footer{padding-top:32px;padding-bottom:48px}
@media (max-width:640px){main,header,nav,footer{padding-left:16px;padding-right:16px}dl{grid-template-columns:1fr;gap:0}.columns{columns:1}dd{margin-bottom:8px}
.line .place{margin-left:0;width:100%}.talk .words{margin-left:0}nav a{display:inline-block;padding:12px 0}
.rows thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
.rows tr{display:block;padding:8px 0;border-bottom:1px solid var(--line)}
.rows td{display:block;border:0;padding:2px 0;text-align:left}
.rows td:empty{display:none}
.rows td[data-is]::before{content:attr(data-is) " ";color:var(--muted);font-size:12px}}
@media print{@page{margin:16mm 14mm}nav{display:none}body{font-size:10pt;line-height:14pt}a{color:inherit;text-decoration:none}
h2{margin-top:20pt}h2,h3{break-after:avoid}tr,.talk li,.verdict{break-inside:avoid}thead{display:table-header-group}main,header,footer{max-width:none;padding:0}
.wide,figure{overflow:visible}}
"""

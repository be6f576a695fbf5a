import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession import DeliveryRefused
from intersession_actors.outside.channels.addresses import (
    Network,
    addresses_of,
    check_as_written,
    is_public,
    literal_address,
)

PRIVATE = [
    "0.0.0.0",  # noqa: S104 - looked at, not bound
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.88.99.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "3fff::1",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
OLD_FORMS = {
    "0x7f.1": "127.0.0.1",
    "0x7f000001": "127.0.0.1",
    "2130706433": "127.0.0.1",
    "0177.0.0.1": "127.0.0.1",
    "127.1": "127.0.0.1",
    "127.0.0.1.": "127.0.0.1",
    "[::1]": "::1",
    "0xA9.254.0251.0376": "169.254.169.254",
    "0": "0.0.0.0",  # noqa: S104 - looked at, not bound
}


@pytest.mark.clause("X13")
@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_one_public_machine_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_ordinary_address_is_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_address_in_ipv6_clothes_is_what_it_is_without(address: object) -> None:
    assert is_public(f"::ffff:{address}") == is_public(str(address)) == is_public(f"64:ff9b::{address}")


@given(st.text())
def test_what_is_no_address_is_not_public(text: str) -> None:
    assert not is_public(f"{text}.example")


@pytest.mark.clause("X13")
@pytest.mark.parametrize("host", OLD_FORMS)
def test_an_address_in_an_old_form_is_read_as_the_system_reads_it(host: str) -> None:
    assert str(literal_address(host)) == OLD_FORMS[host]
    with pytest.raises(DeliveryRefused, match="ssrf_blocked"):
        check_as_written(host, ())


@pytest.mark.parametrize("host", ["LOCALHOST", "localhost.", "chat.localhost", "[::FFFF:127.0.0.1]"])
def test_a_host_that_is_this_machine_needs_no_looking_up(host: str) -> None:
    with pytest.raises(DeliveryRefused, match="ssrf_blocked"):
        check_as_written(host, ())


@pytest.mark.parametrize("host", ["hooks.example", "feed.cafe", "12345.example", "1a2b", ""])
def test_a_name_is_no_address(host: str) -> None:
    assert literal_address(host) is None
    check_as_written(host, ())


@pytest.mark.clause("X13")
def test_a_name_with_one_private_address_is_refused_whatever_the_others_are() -> None:
    network = Network(resolve=lambda _host, _port: ["93.184.216.34", "10.0.0.1"])

    with pytest.raises(DeliveryRefused, match=r"^ssrf_blocked: hooks\.example is at 10\.0\.0\.1"):
        addresses_of("hooks.example", 443, (), network)


def test_a_host_that_is_allowed_by_name_may_be_anywhere() -> None:
    network = Network(resolve=lambda _host, _port: ["192.168.1.4"])

    assert addresses_of("NTFY.lan.", 80, {"ntfy.lan"}, network) == ("192.168.1.4",)
    assert addresses_of("127.0.0.1", 80, {"127.0.0.1"}, network) == ("127.0.0.1",)
    with pytest.raises(DeliveryRefused):
        addresses_of("other.lan", 80, {"ntfy.lan"}, network)


def test_a_name_without_an_address_leads_nowhere() -> None:
    with pytest.raises(OSError, match="has no address"):
        addresses_of("hooks.example", 80, (), Network(resolve=lambda _host, _port: []))

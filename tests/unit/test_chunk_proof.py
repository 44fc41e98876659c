"""What a stream may ask of its chunks beside the CRC: made by producers, compared by readers, never guessed at."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.records import metadata
from tests.builders.streams import make_stream
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.chunk_header import Chunk, Rejection, encode_headers, parse_chunk
from wavestitch.contracts.chunk_proof import NO_PROOF, Bound, ChunkProof, ProofKind, meets
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Stream, parse_stream
from wavestitch.producers.chunking import cut_recording
from wavestitch.producers.recording import Recording
from wavestitch.secret_reference import proof_of
from wavestitch.settings import load_settings

KEY = b"sixteen bytes or more"
META = metadata(1_700_000_000_000).decode()
MAC, SHA256 = ChunkProof("mac", KEY, "t"), ChunkProof("sha256", topic="t")
DEMANDS = {"mac": MAC, "sha256": SHA256}


def headers(
    proof: ChunkProof, *, value: bytes = b"abcd", waveform_id: str = "w", digest: str | None = None
) -> dict[str, bytes]:
    return dict(
        encode_headers(waveform_id=waveform_id, seq=0, count=2, meta=META, value=value, digest=digest, proof=proof)
    )


def judged(claims: dict[str, bytes], proof: ChunkProof, *, value: bytes = b"abcd") -> Reason | None:
    found = parse_chunk(b"w", list(claims.items()), value, proof)
    return found.reason if isinstance(found, Rejection) else None


@pytest.mark.parametrize("digest", ["0" * 32, None])
@pytest.mark.parametrize("count", [2, None])
def test_what_is_sealed_is_what_the_contract_says(count: int | None, digest: str | None) -> None:
    said = (b"t", b"w", b"0", b"" if count is None else b"2", META.encode(), (digest or "").encode())
    text = b"%d %d %d %d %d %d\n" % tuple(map(len, said)) + b"\0".join((*said, b"abcd"))
    for proof, right in (
        (MAC, hmac.new(KEY, text, "sha256").hexdigest()),
        (SHA256, hashlib.sha256(text).hexdigest()),
    ):
        written = encode_headers(
            waveform_id="w", seq=0, count=count, meta=META, value=b"abcd", digest=digest, proof=proof
        )
        assert dict(written)[str(proof.header)] == right.encode()


@pytest.mark.parametrize("kind", ["mac", "sha256"])
def test_only_what_carries_the_proof_is_a_chunk(kind: str) -> None:
    demanded = DEMANDS[kind]
    assert judged(headers(demanded), demanded) is None
    assert judged(headers(NO_PROOF), demanded) is Reason.UNPROVEN
    assert judged(headers(demanded, waveform_id="v"), demanded) is Reason.CORRUPT
    crc = headers(NO_PROOF)["ws-crc"]
    other = headers(demanded, value=b"dcba")[str(demanded.header)]
    assert judged({**headers(demanded), str(demanded.header): other}, demanded) is Reason.FORGED
    assert judged({**headers(demanded), str(demanded.header): b"x" * 64}, demanded) is Reason.BAD_HEADER
    assert judged({**headers(demanded), "ws-crc": crc[::-1]}, demanded) is Reason.CORRUPT
    assert judged({**headers(demanded), str(demanded.header): b"f" * 64}, NO_PROOF) is None


def test_another_key_is_a_forgery_and_a_digest_is_no_mac() -> None:
    assert judged(headers(ChunkProof("mac", KEY + b"!", "t")), MAC) is Reason.FORGED
    assert judged(headers(SHA256), MAC) is Reason.UNPROVEN
    as_mac = {**headers(NO_PROOF), "ws-mac": headers(SHA256)["ws-sha256"]}
    assert judged(as_mac, MAC) is Reason.FORGED


def test_parts_cannot_be_moved_from_one_to_the_next() -> None:
    inside = b"w\x000\x002\x00" + META.encode()
    value = b"0\x001\x00{}\x00\x00ab"
    one, other = Bound(b"w", b"0", b"2", META.encode(), b""), Bound(inside + b"\x00", b"0", b"1", b"{}", b"")
    assert b"\0".join((*one, value)) == b"\0".join((*other, b"ab"))
    assert MAC.of(one, value) != MAC.of(other, b"ab")


def test_a_sealed_chunk_proves_nothing_in_another_topic_or_with_another_digest() -> None:
    sealed = headers(MAC)
    assert judged(sealed, ChunkProof("mac", KEY, "u")) is Reason.FORGED
    assert judged({**sealed, "ws-digest": b"0" * 32}, MAC) is Reason.CORRUPT
    again = {**sealed, "ws-digest": b"0" * 32, "ws-crc": headers(NO_PROOF, digest="0" * 32)["ws-crc"]}
    assert judged(again, MAC) is Reason.FORGED


@given(
    samples=st.binary(min_size=2, max_size=400).filter(lambda b: len(b) % 2 == 0),
    chunk_bytes=st.integers(2, 64),
    kind=st.sampled_from(["none", "sha256", "mac"]),
    keyed=st.booleans(),
    note=st.text(max_size=20),
)
def test_what_a_producer_cuts_a_reader_takes_and_not_with_one_byte_changed(
    samples: bytes, chunk_bytes: int, kind: str, keyed: bool, note: str
) -> None:
    proof = {"none": NO_PROOF, **DEMANDS}[kind]
    meta = json.dumps({**json.loads(META), "note": note})
    cut = cut_recording(Recording("µ-1", meta, samples), chunk_bytes, keyed=keyed, proof=proof)
    found = [parse_chunk(r.key, r.headers, bytes(r.value), proof) for r in cut]
    pieces = [c for c in found if isinstance(c, Chunk)]
    assert [(c.waveform_id, c.seq, c.count, c.meta) for c in pieces] == [
        ("µ-1", n, len(cut), meta) for n in range(len(cut))
    ]
    assert b"".join(bytes(r.value) for r in cut) == samples
    for record in cut:
        changed = bytearray(record.value)
        changed[-1] ^= 1
        assert isinstance(parse_chunk(record.key, record.headers, bytes(changed), proof), Rejection)


def sealed_stream(reference: str) -> Stream:
    return make_stream("s", topic="t", proof="mac", proof_key=reference)


def test_the_key_is_looked_up_where_the_stream_says_and_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "ward.key").write_bytes(KEY + b"\n")
    (tmp_path / "ward.key").symlink_to("..data/ward.key")  # as secrets are mounted
    for reference in ("env:WAVESTITCH_PROOF_K", "file:ward.key"):
        stream = sealed_stream(reference)
        found = proof_of(stream, keys=tmp_path, environment={"WAVESTITCH_PROOF_K": KEY.decode()})
        assert found == MAC
        assert "sixteen" not in repr(found)
        assert "sixteen" not in stream.model_dump_json()


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("env:WAVESTITCH_PROOF_ABSENT", "which is not set"),
        ("env:WAVESTITCH_PROOF_SHORT", "5 bytes"),
        ("file:none", "No such file"),
        ("file:out", "a link out of the folder of keys; put the key itself there"),
        ("file:folder", "no plain file"),
    ],
)
def test_a_key_that_is_not_to_be_had_is_refused(tmp_path: Path, reference: str, says: str) -> None:
    (tmp_path / "another secret").write_bytes(KEY)
    keys = tmp_path / "keys"
    (keys / "folder").mkdir(parents=True)
    (keys / "out").symlink_to("../another secret")
    with pytest.raises(BadInput, match=says):
        proof_of(sealed_stream(reference), keys=keys, environment={"WAVESTITCH_PROOF_SHORT": "short"})


def test_no_file_is_opened_where_the_settings_name_no_folder_of_keys() -> None:
    with pytest.raises(BadInput, match="set key_folder"):
        proof_of(sealed_stream("file:passwd"))


@pytest.mark.parametrize(
    "reference",
    [
        "env:KAFKA_PASSWORD",
        "env:AWS_SECRET_ACCESS_KEY",
        "env:wavestitch_proof_k",
        "env:WAVESTITCH_PROOF_",
        "env:WAVESTITCH_PROOF_K ",
        "env:WAVESTITCH_PROOF_K\nX",
        "file:/run/secrets/kafka",
        "file:../kafka",
        "file:a/b",
        "file:.hidden",
        "file:..",
        "file:",
        "file:a\n",
        "secret",
    ],
)
def test_a_stream_s_file_can_have_no_other_secret_looked_up(reference: str) -> None:
    declared = f"topic: t\ngroup: g\nproof: mac\nproof_key: {json.dumps(reference)}\n"
    with pytest.raises(BadInput, match=r"'proof_key' is not valid: .*write env:WAVESTITCH_PROOF_NAME"):
        parse_stream(declared, name="s")


@pytest.mark.parametrize(
    "more",
    [
        "proof: mac",
        "proof_key: env:WAVESTITCH_PROOF_K",
        "proof: sha256\nproof_key: env:WAVESTITCH_PROOF_K",
        "proof: md5",
    ],
)
def test_a_stream_that_asks_for_what_cannot_be_is_refused(more: str) -> None:
    with pytest.raises(BadInput, match="proof"):
        parse_stream(f"topic: t\ngroup: g\n{more}\n", name="s")


@pytest.mark.parametrize(("size", "allowed"), [(0, False), (15, False), (16, True), (4096, True), (4097, False)])
def test_a_key_has_16_to_4096_bytes_and_a_digest_needs_none(size: int, allowed: bool) -> None:
    assert ChunkProof("sha256", b"k" * size).header == "ws-sha256"
    assert ChunkProof("none", b"k" * size).header is None
    if allowed:
        assert ChunkProof("mac", b"k" * size).header == "ws-mac"
    else:
        with pytest.raises(ValueError, match=f"the key has {size} bytes; allowed are 16 to 4096"):
            ChunkProof("mac", b"k" * size)


@pytest.mark.parametrize(
    ("proof", "good_for"), [("none", {"none"}), ("sha256", {"none", "sha256"}), ("mac", {"none", "sha256", "mac"})]
)
def test_a_chunk_is_believed_where_no_more_is_asked_than_it_met(proof: ProofKind, good_for: set[str]) -> None:
    assert {asked for asked in get_args(ProofKind) if meets(proof, asked)} == good_for


def test_a_deployment_looks_for_keys_in_the_folder_that_its_settings_name(tmp_path: Path) -> None:
    (tmp_path / "ward.key").write_bytes(KEY)
    config = tmp_path / "wavestitch.toml"
    config.write_text(
        f'landing = "/l"\ndocs = "/d"\nkey_folder = "{tmp_path}"\n[kafka]\nbootstrap = "127.0.0.1:1"\n'
        '[tables]\nuri = "sqlite:///c"\nwarehouse = "file:///w"\n'
    )
    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": str(config)}), guest=True)
    assert deployment.proof(sealed_stream("file:ward.key")) == MAC

"""Reads an ECG of the MIT-BIH Arrhythmia Database that was stored as millivolts in a NumPy archive.

The archive holds one array, `ecg`, and says neither rate nor gain nor whose heart it was: these are properties of
the database (360 Hz, 200 counts per mV, zero at 1024), and record and lead stand in the file's name. The millivolts
are turned back into the counts that the converter gave, and only if that is exact: otherwise the file is refused.
"""

from __future__ import annotations

import lzma
import re
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.errors import BadInput
from wavestitch.producers.recording import Recording, make_recording
from wavestitch.producers.recording_spans import cut_spans, sample_time_ns

SAMPLING_RATE_HZ = 360
ADC_GAIN = 200
"""Counts per mV."""
BASELINE = 1024
"""Counts at 0 mV."""
_UNREADABLE = (
    *(OSError, ValueError, EOFError, IndexError, TypeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    RuntimeError,  # packed with a password, or by a method that nobody knows
    *(tokenize.TokenError, MemoryError),  # of the text that says what the numbers are
)
_NAME = re.compile(r"^(?P<record>mitdb-\d{3})-(?P<lead>[a-z0-9]+)$")


def read_ecg_npz(path: Path, *, seconds_per_recording: float, start_time_ns: int | None = None) -> list[Recording]:
    """The ECG in `path` (`mitdb-RECORD-LEAD.npz`) as recordings named `mitdb-208-MLII-0000` and on, in order.

    Samples are int16 counts at 360 Hz in mV after gain and baseline; the first is at `start_time_ns` (ns since 1970
    UTC). Raises `BadInput` without it, for a file that cannot be read, has another name or is not exactly such an ECG.
    """
    if start_time_ns is None:
        raise BadInput(f"{path}: an .npz file does not say when it was recorded; give the start time")
    named = _NAME.match(path.stem)
    if named is None:
        raise BadInput(
            f"{path}: the name does not say which record and lead of the MIT-BIH database it is; "
            "rename it like mitdb-208-mlii.npz"
        )
    counts = to_counts(_load(path), where=str(path))
    source, channel = named["record"], named["lead"].upper()
    spans = cut_spans(len(counts), sampling_rate_hz=SAMPLING_RATE_HZ, seconds=seconds_per_recording)
    return [
        make_recording(
            waveform_id=f"{source}-{channel}-{number:04d}",
            source=source,
            channel=channel,
            start_time_ns=sample_time_ns(start_time_ns, start, sampling_rate_hz=SAMPLING_RATE_HZ),
            sampling_rate_hz=SAMPLING_RATE_HZ,
            sample_format="i16le",
            units="mV",
            adc_gain=ADC_GAIN,
            baseline=BASELINE,
            samples=counts[start:end].tobytes(),
        )
        for number, (start, end) in enumerate(spans)
    ]


def to_counts(millivolts: npt.NDArray[np.float64], *, where: str) -> npt.NDArray[np.int16]:
    """Converter counts, little-endian int16, shape as given. Raises `BadInput` unless they give back every value."""
    counts = np.rint(millivolts * ADC_GAIN + BASELINE)
    limits = np.iinfo(np.int16)
    inside = bool(np.all((counts >= limits.min) & (counts <= limits.max)))
    if not inside or not np.array_equal((counts - BASELINE) / ADC_GAIN, millivolts):
        raise BadInput(
            f"{where}: its values are not whole counts of a converter with gain {ADC_GAIN} per mV and zero at "
            f"{BASELINE}, so storing them as int16 would change them; it is not an ECG of this database"
        )
    return counts.astype("<i2")


def _load(path: Path) -> npt.NDArray[np.float64]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            ecg = archive["ecg"]
    except KeyError:
        raise BadInput(f"{path}: the archive has no array named ecg") from None
    except _UNREADABLE as error:
        raise BadInput(f"{path} cannot be read as a NumPy archive: {error}") from None
    if ecg.dtype != np.float64 or ecg.ndim != 1 or not len(ecg):
        raise BadInput(f"{path}: ecg is {ecg.dtype} of shape {ecg.shape}; it must be one row of float64 in mV")
    return np.asarray(ecg)

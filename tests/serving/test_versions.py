"""Versions that come, go and are broken."""

import asyncio
import errno
import logging
import os
import shutil
import threading
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tests.serving.conftest import SECONDS, SENTENCES, metric, translate, wait_for, warm_up_default_alone
from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError
from tf_transformer.export.saved_model import export
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import ServedModel
from tf_transformer.translation.exported import ExportedTranslator


@pytest.mark.long
def test_a_new_version_takes_over_and_no_request_fails(start_server, copy_run, soon_warm, exported, tmp_path):
    models = tmp_path / "copy"
    shutil.copytree(soon_warm, models / "1")
    served = start_server(models, "--poll-seconds", "0.2")
    old = exported.translate_strings(SENTENCES[:3])
    stop, failures, answers = threading.Event(), [], []

    def ask() -> None:
        while not stop.wait(0.1):  # requests that never rest leave a new version a tenth of the time
            try:
                answers.append(translate(served, SENTENCES[:3]))
            except Exception as error:
                failures.append(error)

    clients = [threading.Thread(target=ask) for _ in range(3)]
    for client in clients:
        client.start()
    # What is no model is passed over, with one line in the log; what comes after it is served.
    (models / "2").mkdir()
    (models / "2" / "saved_model.pb").write_bytes(b"damaged")
    wait_for(lambda: "version 1 is still served: cannot load" in served.log.read_text())
    # Another search, so that each answer shows which version gave it.
    third = warm_up_default_alone(export(copy_run, tmp_path / "3", DecodingConfig(max_length=2)))
    new = ExportedTranslator(third).translate_strings(SENTENCES[:3])
    third = third.rename(models / "3")
    assert new != old
    wait_for(lambda: new in answers)
    assert metric(served, "tf_transformer_version") == 3
    assert (
        served.log.read_text().count("version 1 is still served")
        == metric(served, "tf_transformer_failed_loads_total")
        == 1
    )
    of_third = list(answers)
    taken_over = of_third.index(new)
    assert taken_over > 0
    assert of_third[taken_over:].count(old) <= 2  # those that the other two clients waited for
    # One more comes while another is loaded, and is then the one that is served.
    shutil.copytree(third, models / "4")
    beside = shutil.copytree(soon_warm, tmp_path / "5")
    wait_for(lambda: "version 4: TensorFlow" in served.log.read_text())
    beside.rename(models / "5")
    wait_for(lambda: metric(served, "tf_transformer_version") == 5)
    assert translate(served, SENTENCES[:3]) == old
    # What is taken away is no longer served, but the one below.
    shutil.rmtree(models / "5")
    wait_for(lambda: metric(served, "tf_transformer_version") == 4)
    assert translate(served, SENTENCES[:3]) == new
    for number in (4, 3, 2):
        shutil.rmtree(models / str(number))
    wait_for(lambda: metric(served, "tf_transformer_version") == 1)
    assert translate(served, SENTENCES[:3]) == old
    stop.set()
    for client in clients:
        client.join()
    assert failures == []
    assert all(answer in (old, new) for answer in answers)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is not an exported model, and has no version folder"):
        ServedModel(tmp_path, None, Limits(), Metrics())
    tf.saved_model.save(tf.Module(), str(tmp_path / "1"))
    with pytest.raises(InputError, match="has no signature to call"):
        ServedModel(tmp_path, None, Limits(), Metrics())
    numbers = tf.Module()
    numbers.f = tf.function(lambda x: {"y": x}, input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    tf.saved_model.save(numbers, str(tmp_path / "2"), signatures=numbers.f)
    with pytest.raises(InputError, match=r"must be strings of shape \[batch\]\. Received: signature serving_default"):
        ServedModel(tmp_path, None, Limits(), Metrics())


@pytest.mark.long
def test_requests_of_another_model_are_refused(copy_export, tmp_path):
    shutil.copytree(copy_export, tmp_path / "1")
    file = tmp_path / "1" / "assets.extra" / "tf_serving_warmup_requests"
    with tf.io.TFRecordWriter(str(file)) as writer:
        log = PredictionLog()
        log.predict_log.request.inputs["other"].CopyFrom(tf.make_tensor_proto(["a"]))
        writer.write(log.SerializeToString())
    with pytest.raises(
        InputError, match="is damaged, or belongs to another model: the signature takes text. Received: other"
    ):
        ServedModel(tmp_path, None, Limits(), Metrics())
    file.write_bytes(b"damaged" * 10)
    with pytest.raises(InputError, match="is damaged, or belongs to another model"):
        ServedModel(tmp_path, None, Limits(), Metrics())


@pytest.mark.long
def test_warming_up_is_no_batch_of_a_client(copy_export):
    metrics = Metrics()
    ServedModel(copy_export, None, Limits(), metrics).prepared.result()
    assert b"\ntf_transformer_batches 0.0\n" in metrics.text()
    assert b"\ntf_transformer_sentences_total 0.0\n" in metrics.text()


class FakeVersion:
    """A version whose SavedModel is a word: what it is called, or "bad"."""

    def __init__(self, folder, number, limits, count):
        self.word = (folder / "saved_model.pb").read_text()
        if self.word == "bad":
            raise InputError(f"{folder.name} is bad")
        self.number = number
        self.signatures = SimpleNamespace(inputs={})
        self.is_closed = False

    def warm_up(self, signatures, *, gives_way=False):
        pass

    def close(self):
        self.is_closed = True


@pytest.fixture
def versions(tmp_path, monkeypatch):
    """Writes a version; None takes it away."""
    monkeypatch.setattr("tf_transformer.serving.model.Version", FakeVersion)

    def write(number: int, word: str | None) -> None:
        folder = tmp_path / str(number)
        if word is None:
            shutil.rmtree(folder)
            return
        folder.mkdir(exist_ok=True)
        (folder / "saved_model.pb").write_text(word)
        files = len(list(tmp_path.iterdir()))
        os.utime(folder / "saved_model.pb", (number, files + len(word)))  # a time of its own, however fast this is

    return write


def errors_of(caplog):
    ours = [record for record in caplog.records if record.name.startswith("tf_transformer")]
    return [record.getMessage() for record in ours if record.levelno >= logging.ERROR]


def test_a_broken_newest_version_leaves_the_one_below(versions, tmp_path, caplog):
    for number, word in ((1, "one"), (2, "bad"), (3, "bad")):
        versions(number, word)
    model = ServedModel(tmp_path, "copy", Limits(), Metrics())
    assert model.version.word == "one"
    assert errors_of(caplog) == ["version 3 is skipped: 3 is bad", "version 2 is skipped: 2 is bad"]
    asyncio.run(model.refresh())
    assert len(errors_of(caplog)) == 2  # they are not tried again as they are
    first = model.version
    versions(2, "two")
    asyncio.run(model.refresh())
    assert model.version.word == "two" and first.is_closed
    versions(3, "three")
    asyncio.run(model.refresh())
    assert model.version.word == "three"
    versions(4, "bad")
    asyncio.run(model.refresh())
    assert errors_of(caplog)[-1] == "version 3 is still served: 4 is bad"
    # Back to the one before.
    versions(3, None)
    asyncio.run(model.refresh())
    assert model.version.word == "two"
    versions(3, "three")
    asyncio.run(model.refresh())
    assert model.version.word == "three" and not model.version.is_closed


@pytest.fixture
def unreadable(monkeypatch):
    """The folders that cannot be read, with what the system says."""
    errors = {}

    def check(folder):
        if error := errors.get(folder.name):
            raise error
        return (folder / "saved_model.pb").exists()

    class Fake(FakeVersion):
        def __init__(self, folder, *more):
            check(folder)
            super().__init__(folder, *more)

    monkeypatch.setattr("tf_transformer.serving.versions.is_export", check)
    monkeypatch.setattr("tf_transformer.serving.model.Version", Fake)
    return errors


OS_ERRORS = [PermissionError(errno.EACCES, "Permission denied"), OSError(errno.ESTALE, "Stale file handle")]


@pytest.mark.parametrize("error", OS_ERRORS, ids=str)
def test_a_version_that_cannot_be_read_is_passed_over_until_it_can(versions, unreadable, tmp_path, caplog, error):
    for number, word in ((1, "one"), (2, "two")):
        versions(number, word)
    unreadable["2"] = error
    model = ServedModel(tmp_path, "copy", Limits(), Metrics())
    assert model.version.word == "one"
    assert errors_of(caplog) == [f"version 2 is skipped: cannot read {tmp_path / '2'}: {error.strerror}"]
    asyncio.run(model.refresh())
    assert len(errors_of(caplog)) == 1
    del unreadable["2"]
    versions(2, "second")
    asyncio.run(model.refresh())
    assert model.version.word == "second"
    unreadable["2"] = error  # what is served stays
    asyncio.run(model.refresh())
    assert model.version.word == "second"
    unreadable["3"] = error
    versions(3, "three")
    asyncio.run(model.refresh())
    assert model.version.word == "second"
    assert errors_of(caplog)[-1].startswith("version 2 is still served: cannot read")
    unreadable["1"] = error
    with pytest.raises(InputError, match="cannot read"):
        ServedModel(tmp_path, "copy", Limits(), Metrics())


def test_the_search_for_versions_goes_on_after_any_error(versions, unreadable, tmp_path, caplog):
    versions(1, "one")
    model = ServedModel(tmp_path, "copy", Limits(), Metrics())
    unreadable[tmp_path.name] = OS_ERRORS[1]

    async def watch():
        watching = asyncio.create_task(model.watch(0.001))
        await asyncio.sleep(0.1)
        assert len(errors_of(caplog)) == 1 and errors_of(caplog)[0].startswith("version 1 is still served")
        versions(2, "two")
        del unreadable[tmp_path.name]
        while model.version.word == "one":
            await asyncio.sleep(0.001)
        watching.cancel()

    asyncio.run(asyncio.wait_for(watch(), SECONDS))


def test_where_none_can_be_loaded_the_newest_says_why(versions, tmp_path, caplog):
    for number in (9, 10, 8):
        versions(number, "bad")
    with pytest.raises(InputError, match="10 is bad"):
        ServedModel(tmp_path, "copy", Limits(), Metrics())
    assert [message[:9] for message in errors_of(caplog)] == ["version 9", "version 8"]

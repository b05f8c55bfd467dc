"""redis-py: pipelines, transactions, and watched keys."""

import pytest
import redis


def test_a_pipeline_answers_in_order(r):
    with r.pipeline(transaction=False) as pipe:
        for n in range(2000):
            pipe.set(f"key:{n}", n).get(f"key:{n}")
        answers = pipe.execute()
    assert answers == [answer for n in range(2000) for answer in (True, str(n).encode())]


def test_an_error_in_a_pipeline_is_the_answer_of_its_own_command(r):
    r.set("text", "abc")
    with r.pipeline(transaction=False) as pipe:
        answers = pipe.incr("n").incr("text").incr("n").execute(raise_on_error=False)
    assert (answers[0], answers[2]) == (1, 2)
    assert isinstance(answers[1], redis.ResponseError)


def test_a_transaction_is_executed_whole(r):
    with r.pipeline() as pipe:
        pipe.set("a", 1).incr("a").mget("a", "nobody").expire("a", 100).ttl("a")
        assert pipe.execute() == [True, 2, [b"2", None], True, 100]


def test_an_error_within_a_transaction_leaves_the_rest(r):
    r.set("text", "abc")
    with r.pipeline() as pipe:
        answers = pipe.set("a", 1).incr("text").set("b", 2).execute(raise_on_error=False)
    assert answers[0] is True and answers[2] is True
    assert isinstance(answers[1], redis.ResponseError)
    assert r.mget("a", "b") == [b"1", b"2"]


def test_a_command_that_is_none_aborts_the_transaction(r):
    with r.pipeline() as pipe:
        pipe.set("a", 1).execute_command("NOSUCHCOMMAND")
        with pytest.raises(redis.ResponseError, match="unknown command"):
            pipe.execute()
    assert not r.exists("a")


def test_a_watched_key_that_changes_aborts(r):
    r.set("n", 1)
    with r.pipeline() as pipe:
        pipe.watch("n")
        r.set("n", 5)
        pipe.multi()
        pipe.set("n", int(pipe.get("n") is not None))
        with pytest.raises(redis.WatchError):
            pipe.execute()
    assert r.get("n") == b"5"


@pytest.mark.parametrize("change", ["delete", "incr", "append", "expire"])
def test_any_change_of_a_watched_key_is_seen(r, change):
    r.set("n", 1)
    arguments = {"append": ["0"], "expire": [100]}.get(change, [])
    with r.pipeline() as pipe:
        pipe.watch("n")
        getattr(r, change)("n", *arguments)
        pipe.multi()
        with pytest.raises(redis.WatchError):
            pipe.set("n", 9).execute()


def test_a_watched_key_that_stays_does_not_abort(r):
    r.mset({"n": 1, "other": 1})
    with r.pipeline() as pipe:
        pipe.watch("n")
        r.set("other", 2)
        number = int(pipe.get("n"))
        pipe.multi()
        assert pipe.set("n", number + 1).execute() == [True]
        pipe.watch("n")
        r.set("n", 7)
        pipe.unwatch()
        pipe.multi()
        assert pipe.get("n").execute() == [b"7"]


def test_the_client_tries_again_after_a_conflict(r):
    r.set("n", 0)
    tries = []

    def add_one(pipe):
        number = int(pipe.get("n"))
        if not tries:
            r.incr("n")
        tries.append(number)
        pipe.multi()
        pipe.set("n", number + 1)

    assert r.transaction(add_one, "n") == [True]
    assert tries == [0, 1] and r.get("n") == b"2"


def test_a_lock_is_held_by_one(r):
    # The lock's own release needs scripts; taking it is SET with NX and PX.
    lock = r.lock("lock", timeout=100)
    assert lock.acquire(blocking=False) is True
    assert r.lock("lock", timeout=100).acquire(blocking=False) is False
    assert lock.owned() and lock.locked()
    assert r.pttl("lock") > 0

"""Questions to the workers of a cluster: each gets those about its targets, and a lost one is asked again alone."""

from __future__ import annotations

from normspec.conformance.running.cluster_worker import ClusterWorker
from normspec.conformance.running.question_queue import Lost, Question, QuestionQueue

A, B = Question("a", "about a"), Question("b", "about b")

OF_A, OF_BOTH = ClusterWorker("1", "one", 1, {"a"}), ClusterWorker("2", "two", 1, {"a", "b"})


def test_a_worker_gets_the_first_question_about_its_targets():
    """What it cannot answer keeps its turn."""
    queue = QuestionQueue(iter([B, A]))
    assert (queue.following(OF_A), queue.following(OF_A), queue.ended()) == (A, None, False)
    assert queue.following(OF_BOTH) == B and queue.ended()


def test_a_lost_question_is_asked_once_more_of_another_worker():
    """The worker that lost it gets it only where no other has the target. The second loss is the answer."""
    queue = QuestionQueue(iter([]))
    assert queue.lost(A, OF_A, "its end") is None
    assert queue.to_ask_alone(OF_A, [OF_A, OF_BOTH]) is None and queue.count_to_ask_alone == 1
    assert queue.to_ask_alone(OF_BOTH, [OF_A, OF_BOTH]) == A and queue.ended()
    assert queue.lost(A, OF_BOTH, "another end") == Lost("lost twice with what judged it: its end, and another end")
    assert queue.lost(B, OF_BOTH, "its end") is None
    assert queue.to_ask_alone(OF_BOTH, [OF_A, OF_BOTH]) == B


def test_a_question_without_a_worker_is_given_up_after_some_looks():
    """A look that finds a worker with its target begins the count anew."""
    queue = QuestionQueue(iter([B]))
    assert not queue.ended()
    looks = [queue.without_worker([worker], 2) for worker in (OF_A, OF_BOTH, OF_A, OF_A)]
    assert looks == [[], [], [], [B]] and queue.ended()

"""A small game in a domain of its own: nothing in it is named, worded or arranged as in ALFWorld."""

from __future__ import annotations

from typing import Any

DOMAIN = """
(define (domain vault) ; a cellar with doors
 (:requirements :adl)
 (:types room thing)
 (:constants Lobby - room)
 (:predicates (in ?r - room) (door ?a ?b - room) (locked ?r - room) (lies ?t - thing ?r - room)
              (has ?t - thing) (free) (seen ?r - room) (helped)
              (lit ?r - room) (opens ?k - thing ?r - room) (twin ?a ?b - thing))
 (:functions (total-cost) - number)
 (:action walk :parameters (?from ?r - room)
    :precondition (and (in ?from) (or (door ?from ?r) (door ?r ?from)) (not (locked ?r)) (not (= ?from ?r)))
    :effect (and (not (in ?from)) (in ?r) (increase (total-cost) 1)))
 (:action peer :parameters (?r - room) :precondition (in ?r) :effect (seen ?r))
 (:action rest :parameters (?r - room) :precondition (in ?r) :effect (in ?r))
 (:action nap :parameters (?r - room) :precondition (in ?r) :effect (and (in ?r) (not (in ?r)) (seen ?r)))
 (:action grab :parameters (?t - thing ?r - room)
    :precondition (and (in ?r) (lies ?t ?r) (free))
    :effect (and (not (lies ?t ?r)) (has ?t) (not (free))))
 (:action drop :parameters (?t - thing ?r - room)
    :precondition (and (has ?t) (in ?r))
    :effect (and (lies ?t ?r) (not (has ?t)) (free)))
 (:action unlock :parameters (?r - room)
    :precondition (and (locked ?r) (exists (?k - thing ?here - room)
        (and (has ?k) (opens ?k ?r) (in ?here) (door ?here ?r))))
    :effect (not (locked ?r)))
 (:action press :parameters (?r - room) :precondition (in ?r)
    :effect (and (when (lit ?r) (not (lit ?r))) (when (not (lit ?r)) (lit ?r))))
 (:action help :parameters () :precondition () :effect (helped)))
"""

PROBLEM = """
(define (problem small) (:domain vault)
 (:objects Cellar - room Vault - room Coin_bar_1 Coin_bar_2 Key_bar_1 - thing)
 (:init (in Lobby) (door Lobby Cellar) (door Cellar Vault) (locked Vault) (free)
        (lies Key_bar_1 Lobby) (lies Coin_bar_1 Cellar) (lies Coin_bar_2 Cellar)
        (opens Key_bar_1 Vault) (= (total-cost) 0))
 (:goal (and (exists (?t - thing) (and (lies ?t Vault) (not (twin ?t ?t))))
             (imply (lit Vault) (free)))))
"""

GRAMMAR = '''
# what is said
grammar :: """
{
  "intro": [{"rhs": "-= Vault =-\\n\\n#scene#\\n\\nYour task is to: leave a thing in the vault."}],
  "scene": [
    {"condition": "in(r:room) & lies(t:thing, r:room)",
     "rhs": "[{r.name | in(r:room)}] holds [{#item(t)# | in(r:room) & lies(t:thing, r:room)}]#light#."},
    {"rhs": "There is nothing here#light#."}
  ],
  "light": [
    {"condition": "in(r:room) & lit(r:room)", "rhs": ", and it is bright"},
    {"condition": "in(r:room) & not_lit(r:room)", "rhs": ", and it is dark again"},
    {"rhs": ""}
  ],
  "others": [{"rhs": "Next door: [{x.id | door(r:room, x:room)}]."}],
  "item(t)": [{"rhs": "{t.indefinite + ' ' + t.name}"}],
  "list_empty": [{"rhs": "nothing"}],
  "list_separator": [{"rhs": ", "}],
  "list_last_separator": [{"rhs": "& "}]
}
""";
action walk { template :: "walk to {r.id}"; feedback :: "#scene#"; }
action peer { template :: "peer"; feedback :: "#others#"; }
action rest { template :: "rest"; feedback :: "You rest."; }
action nap { template :: "nap"; feedback :: "You nap. #scene#"; }
action grab { template :: "grab {t}"; feedback :: "Got {t.definite} {t.name or t.id}. #scene#"; }
action drop { template :: "drop {t}"; feedback :: "Gone."; }
action unlock { template :: "unlock {r.id}"; feedback :: "Click."; }
action press {
  template :: "press";
  feedback :: "#press.feedback#";
  grammar :: """
    # a comment in here
    {"press.feedback": [{"rhs": "Snap#light#."}]}
  """;
}
action help { template :: "help"; feedback :: "
  Try things."; }
'''


WALKTHROUGH = ["grab key 1", "walk to cellar", "unlock vault", "drop key 1", "grab coin 1", "walk to vault", "drop coin 1"]
WITHOUT_LIGHT = GRAMMAR.replace("#light#", "")  # conditional effects are where our texts and the original's differ


def game(**changes: str) -> dict[str, Any]:
    """The game as a file holds it, with some of its texts changed."""
    data = {"pddl_domain": DOMAIN, "pddl_problem": PROBLEM, "grammar": GRAMMAR, "solvable": True, "walkthrough": WALKTHROUGH}
    return data | changes

;; A household for one agent: go, open, take, move, clean, heat, cool, use, slice.
;; Names of types, predicates and actions are those that ALFWorld's games use, so that either engine plays these files.
(define (domain alfred)
(:requirements :adl :action-costs :typing)
(:types agent location receptacle object rtype otype)

(:predicates
  ;; where things are
  (atLocation ?a - agent ?l - location)
  (receptacleAtLocation ?r - receptacle ?l - location)
  (objectAtLocation ?o - object ?l - location)
  (inReceptacle ?o - object ?r - receptacle)
  (inReceptacleObject ?inner - object ?outer - object)
  (holds ?a - agent ?o - object)
  (holdsAny ?a - agent)
  ;; what things are
  (receptacleType ?r - receptacle ?t - rtype)
  (objectType ?o - object ?t - otype)
  (canContain ?rt - rtype ?ot - otype)
  (openable ?r - receptacle)
  (pickupable ?o - object)
  (cleanable ?o - object)
  (heatable ?o - object)
  (coolable ?o - object)
  (toggleable ?o - object)
  (sliceable ?o - object)
  (isReceptacleObject ?o - object)
  ;; how things are now
  (opened ?r - receptacle)
  (checked ?r - receptacle)
  (isClean ?o - object)
  (isHot ?o - object)
  (isCool ?o - object)
  (isOn ?o - object)
  (isToggled ?o - object)
  (isSliced ?o - object))

(:functions (total-cost) - number)

;; ---- looking: nothing changes but a note of what was checked

(:action look
  :parameters (?a - agent ?l - location)
  :precondition (and (atLocation ?a ?l))
  :effect (and (checked ?l)))

(:action inventory
  :parameters (?a - agent)
  :precondition ()
  :effect (and (checked ?a)))

(:action examineReceptacle
  :parameters (?a - agent ?r - receptacle)
  :precondition (and (exists (?l - location) (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l))))
  :effect (and (checked ?r)))

(:action examineObject
  :parameters (?a - agent ?o - object)
  :precondition (or
    (exists (?l - location ?r - receptacle) (and
      (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r) (or (not (openable ?r)) (opened ?r))))
    (holds ?a ?o))
  :effect (and (checked ?o)))

;; ---- moving about and moving things

(:action GotoLocation
  :parameters (?a - agent ?lStart - location ?lEnd - location ?r - receptacle)
  :precondition (and (atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd))
  :effect (and (not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd) (increase (total-cost) 1)))

(:action OpenObject
  :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (openable ?r) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (not (opened ?r)))
  :effect (and (opened ?r) (checked ?r) (increase (total-cost) 1)))

(:action CloseObject
  :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (openable ?r) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (opened ?r))
  :effect (and (not (opened ?r)) (increase (total-cost) 1)))

(:action PickupObject
  :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and
    (pickupable ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r) (not (holdsAny ?a))
    (or (not (openable ?r)) (opened ?r)))
  :effect (and
    (not (inReceptacle ?o ?r)) (holds ?a ?o) (holdsAny ?a) (not (objectAtLocation ?o ?l)) (increase (total-cost) 1)))

(:action PutObject
  :parameters (?a - agent ?l - location ?o - object ?r - receptacle ?ot - otype ?rt - rtype)
  :precondition (and
    (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (or (not (openable ?r)) (opened ?r))
    (objectType ?o ?ot) (receptacleType ?r ?rt) (canContain ?rt ?ot))
  :effect (and
    (inReceptacle ?o ?r) (objectAtLocation ?o ?l) (not (holds ?a ?o)) (not (holdsAny ?a)) (increase (total-cost) 1)))

;; ---- changing things, each at its own appliance; doors do not matter here

(:action CleanObject
  :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
  :precondition (and
    (cleanable ?o) (or (receptacleType ?r SinkType) (receptacleType ?r SinkBasinType))
    (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o))
  :effect (and (increase (total-cost) 5) (isClean ?o)))

(:action HeatObject
  :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
  :precondition (and
    (heatable ?o) (or (receptacleType ?r MicrowaveType)) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o))
  :effect (and (increase (total-cost) 5) (isHot ?o) (not (isCool ?o))))

(:action CoolObject
  :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
  :precondition (and
    (coolable ?o) (or (receptacleType ?r FridgeType)) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o))
  :effect (and (increase (total-cost) 5) (isCool ?o) (not (isHot ?o))))

(:action ToggleObject
  :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (toggleable ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r))
  :effect (and
    (increase (total-cost) 5) (when (isOn ?o) (not (isOn ?o))) (when (not (isOn ?o)) (isOn ?o)) (isToggled ?o)))

(:action SliceObject
  :parameters (?a - agent ?l - location ?co - object ?ko - object)
  :precondition (and
    (sliceable ?co) (or (objectType ?ko KnifeType) (objectType ?ko ButterKnifeType))
    (atLocation ?a ?l) (objectAtLocation ?co ?l) (holds ?a ?ko))
  :effect (and (increase (total-cost) 5) (isSliced ?co)))

(:action help
  :parameters (?a - agent)
  :precondition ()
  :effect (and (checked ?a)))
)

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

   The protocol of include/penstock/run/engine/workers/ring.hpp for the model checker spin: every interleaving of WORKERS workers,
   one consumer and a thread that stops the ring at any moment (or never). Checked: a grain is evaluated once, only
   while its block is open; a block is delivered when all of its grains are done; `finish` runs once a block, before
   delivery; nobody sleeps for ever (no invalid end state), stopped or not. A third thread lowers and raises the number
   of workers (live_limits.hpp) at any moments: one beyond it rests before it takes a ticket. With DEAR, each block has
   a slot in its last grain that a worker without a ticket may begin early, at any moment or never (dear_slots.hpp).

   Operations on words are sequentially consistent here, as those that wait and stop are in the code. A wait sleeps
   only if the word still is what was seen, and wakes only when somebody notifies: a missing notify is a deadlock. */

#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef GRAINS
#define GRAINS 2
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef SEQUENCES
#define SEQUENCES 4
#endif
#ifndef MOVES
#define MOVES 1 /* whether somebody adjusts */
#endif
#ifndef DEAR
#define DEAR 0
#endif
#define THREADS (WORKERS + 2)
#define STOP 255
#define WORD(s) ((s) + 1)
#define NOWHERE 255
#define REST 254          /* sleeping until `at_work` changes */
#define ACTIVE_STOPPED 128 /* the top bit of `at_work` */

byte ticket;
byte turn[BLOCKS];
byte ready[BLOCKS];
byte done[BLOCKS];
byte dear[BLOCKS]; /* the word of the block whose slot nobody has begun */
bool stopped;
byte at_work = WORKERS;

/* what is asserted */
bool open_now[SEQUENCES];
bool delivered[SEQUENCES];
byte evaluated[SEQUENCES * GRAINS];
byte finished[SEQUENCES];
byte evaluated_apart[SEQUENCES];
byte workers_left = WORKERS;

/* sleeping: 2r waits for turn[r], 2r + 1 for ready[r] */
byte asleep[THREADS];

inline notify(place) {
  d_step {
    n = 0;
    do
    :: n < THREADS -> if :: asleep[n] == place -> asleep[n] = NOWHERE :: else fi; n++
    :: else -> break
    od;
    n = 0
  }
}

inline wait(word, place, wanted) {
  do
  :: seen = word;
     if
     :: stopped -> go = false; break
     :: else
     fi;
     if
     :: seen == wanted -> go = true; break
     :: else
     fi;
     d_step { if :: word == seen -> asleep[_me] = place :: else fi };
     asleep[_me] == NOWHERE
  od
}

inline stop_ring() {
  stopped = true;
  k = 0;
  do
  :: k < BLOCKS ->
     turn[k] = STOP;
     notify(2 * k);
     ready[k] = STOP;
     notify(2 * k + 1);
     k++
  :: else -> break
  od;
  at_work = at_work | ACTIVE_STOPPED;
  notify(REST)
}

inline rest() {
  do
  :: seen = at_work;
     if
     :: _me < seen -> break
     :: else
     fi;
     d_step { if :: at_work == seen -> asleep[_me] = REST :: else fi };
     asleep[_me] == NOWHERE
  od;
  skip /* a loop must not end at a d_step */
}

/* Of the ticket t. */
inline evaluate() {
  d_step {
    assert(open_now[s] && !delivered[s]);
    evaluated[t]++;
    assert(evaluated[t] == 1)
  }
}

/* Of the slot of block s that is no part of its grain. */
inline evaluate_apart() {
  d_step {
    assert(open_now[s] && !delivered[s]);
    evaluated_apart[s]++;
    assert(evaluated_apart[s] == 1)
  }
}

/* Who evaluates its grain begins the slot if nobody has. */
inline take() {
  d_step { if :: dear[r] == WORD(s) -> dear[r] = 0; go = true :: else -> go = false fi };
  if
  :: go -> done[r]++; evaluate_apart()
  :: else
  fi
}

inline claim() {
  if
  :: r = 0
  :: BLOCKS > 1 -> r = BLOCKS - 1
  fi;
  seen = dear[r];
  d_step { go = false; if :: seen != 0 && dear[r] == seen -> dear[r] = 0; s = seen - 1; go = true :: else fi }
}

inline finish_grain() {
  d_step { done[r]++; last = (done[r] == GRAINS) };
  if
  :: last ->
     done[r] = 0;
     d_step { assert(!delivered[s]); finished[s]++ };
     ready[r] = WORD(s);
     if
     :: stopped -> ready[r] = STOP
     :: else
     fi;
     notify(2 * r + 1)
  :: else
  fi
}

inline adjust(count) {
  d_step { at_work = (count) | (at_work & ACTIVE_STOPPED) };
  notify(REST)
}

inline open_block(s) {
#if DEAR
  done[(s) % BLOCKS] = 255; /* below 0 */
  d_step { open_now[s] = true; dear[(s) % BLOCKS] = WORD(s) };
#endif
  d_step { open_now[s] = true; turn[(s) % BLOCKS] = WORD(s) };
  if
  :: stopped -> turn[(s) % BLOCKS] = STOP
  :: else
  fi;
  notify(2 * ((s) % BLOCKS))
}

proctype worker(byte _me) {
  byte t, s, r, seen, n;
  bool go, last;
  do
  :: rest();
     if
     :: stopped -> break
     :: else
     fi;
     go = false; /* fewer states */
#if DEAR
     if
     :: claim()
     :: skip
     fi;
     if
     :: go ->
        evaluate_apart();
        if
        :: stopped -> break
        :: else
        fi;
        finish_grain()
     :: else
     fi;
#endif
     d_step { t = ticket; ticket++; s = t / GRAINS; r = s % BLOCKS };
     if
     :: turn[r] == WORD(s) -> go = true
     :: else -> wait(turn[r], 2 * r, WORD(s))
     fi;
     if
     :: !go -> break
     :: else
     fi;
     evaluate();
#if DEAR
     if
     :: t % GRAINS == GRAINS - 1 -> take()
     :: else
     fi;
#endif
     if
     :: stopped -> break
     :: else
     fi;
     finish_grain()
  od;
  workers_left--
}

proctype consumer(byte _me) {
  byte opened = 0, next = 0, seen, n, k, t, s, r;
  bool go, last;
  do
  :: opened < SEQUENCES && opened < BLOCKS -> open_block(opened); opened++
  :: else -> break
  od;
  do
  :: next < SEQUENCES ->
     wait(ready[next % BLOCKS], 2 * (next % BLOCKS) + 1, WORD(next));
     if
     :: !go -> break
     :: else
     fi;
     d_step {
       k = 0;
       do
       :: k < GRAINS -> assert(evaluated[next * GRAINS + k] == 1); k++
       :: else -> break
       od;
       assert(finished[next] == 1 && evaluated_apart[next] == DEAR);
       delivered[next] = true;
       open_now[next] = false;
       k = 0
     };
     next++;
     if
     :: opened < SEQUENCES -> open_block(opened); opened++
     :: else
     fi
  :: next < SEQUENCES -> break /* the loop is left early */
  :: else -> break
  od;
  assert(stopped || next <= SEQUENCES);
  stop_ring();
  workers_left == 0 /* joined */
}

/* Another thread's request_stop, at any moment or not at all. */
proctype stopper() {
  byte k, n;
  if
  :: stop_ring()
  :: skip
  fi
}

/* Another thread's adjust: fewer workers, and perhaps all of them again. */
proctype mover() {
  byte n;
  adjust(1);
  if
  :: adjust(WORKERS)
  :: skip
  fi
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < THREADS -> asleep[i] = NOWHERE; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < WORKERS -> run worker(i); i++
    :: else -> break
    od;
    run consumer(WORKERS);
    run stopper();
    if
    :: MOVES -> run mover()
    :: !MOVES -> skip
    fi
  }
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

   The protocol of include/penstock/storage/range_store.hpp for the model checker spin, with those that use it: every
   interleaving of a fetcher (run/engine/read_ahead/fetcher.hpp), WORKERS workers, STORAGES threads of a storage that end reads in
   any order, good or failed, the consumer, who says what has passed, may begin again once (RESTARTS) and ends the run,
   and a thread that stops it at any moment (or never). Any turn may be one that no worker takes.

   Checked: a worker that reads a part of its turn sees the bytes of that turn, and nobody holds a read whose memory was
   given to another; the parts of a turn are handed over or let go once, and only their owner touches them; the users of
   a read never fall below 0, and are 0 in the end; nobody sleeps for ever (no invalid end state), stopped or not,
   neither the fetcher for room nor a worker or the consumer for a read; nothing touches the store behind its end.

   Operations on words are sequentially consistent here, as those are in the code that decide whether somebody has to be
   woken (`wants_room`, `users`, `passed`). A load followed by an exchange that is tried again until it succeeds is one
   step, as is what is done under the lock and touches nothing that is changed without it. A wait sleeps when it has
   found nothing and lets the lock go in the same step, and wakes only when somebody notifies: a missing notify is a
   deadlock.

   With LAZY reads end only when they are cancelled, so that stop and halt alone can end a wait. The run never comes to
   its end then, and is always stopped.

   Bounded: TURNS turns, of which SLOTS are opened at once, so that each slot is used again; memory for ROOM reads, all
   of one size, so that a read and its bytes are one place here. The first list that is fetched has two turns, both with
   parts in two reads, and the first read is of both; each other list has a turn and its read. A turn is its own block,
   workers take them in order, and the lock and the conditions of read_ahead.hpp are steps that happen when they may. */

#ifndef TURNS
#define TURNS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef ROOM
#define ROOM 2
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef STORAGES
#define STORAGES 1
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef STOPS
#define STOPS 1
#endif
#ifndef FAILS
#define FAILS 1 /* whether reads may fail */
#endif
#ifndef UNTAKEN
#define UNTAKEN 0 /* the first turn that workers may leave */
#endif
#ifndef LAZY
#define LAZY 0 /* whether reads end only when they are cancelled; the run is always stopped then */
#endif
#define NONE 255
#define ANY(a) (a[0] + a[1 % ROOM] + a[2 % ROOM] + a[3 % ROOM] != 0) /* ROOM is 4 at most */

/* the word of a slot */
#define UNSEEN 0
#define CLAIMED 1
#define THERE 2
#define TAKEN 3
#define WORD(t, is) ((t) * 4 + (is))
#define TURN(w) ((w) / 4)
#define IS(w) ((w) % 4)

#define LOADING 0
#define READY 1
#define FAILED 2

/* which turns use the reads of the lists: 0 and 1 the first, 0 the second, 1 the third, t the one after t */
#define LISTS (TURNS - 1)
#define FIRST_READ(l) ((l) == 0 -> 0 : (l) + 2)
#define FIRST_TURN(l) ((l) == 0 -> 0 : (l) + 1)
#define LAST_TURN(l) ((l) + 1)
#define USER(r) ((r) <= 1 -> 0 : (r) - 1)
#define OTHER_USER(r) ((r) == 0 -> 1 : NONE)
#define PARTS(t) ((t) <= 1 -> 2 : 1)

/* the store */
byte word[SLOTS];
byte count[SLOTS];
byte part[2 * SLOTS]; /* numbers of reads */
byte users[ROOM];
byte state[ROOM];
byte passed;
bool wants_room;
bool locked;
byte loading;
bool stopped, halted;
bool room_asleep;
bool ended_asleep[WORKERS + 1]; /* workers, and the consumer */

/* the engine and read-ahead */
byte ticket, opened, delivered;
bool done[TURNS];
bool ring_stopped;
byte list;
bool asking, restarting, cleared, ahead_stopped, swept_all;
bool cancelled, begun_again;
byte pending[ROOM]; /* what the storage has to read: numbers of reads, and one */

/* what is asserted */
byte owner[ROOM];   /* which read has the memory, and one */
byte bytes_of[ROOM]; /* whose bytes are there, and one */
byte slot_turn[SLOTS];
byte reading[SLOTS]; /* threads that own the parts of a slot and are not the fetcher */
bool gone[TURNS];    /* handed over or let go */
bool destroyed;
byte workers_left = WORKERS;
byte fetchers_left = 1;

inline lock() {
  atomic { !locked -> locked = true }
}

inline wake_ended() {
  i_ = 0;
  do
  :: i_ <= WORKERS -> ended_asleep[i_] = false; i_++
  :: else -> break
  od;
  i_ = 0
}

inline say_room() {
  if
  :: wants_room -> atomic { !locked -> room_asleep = false }
  :: else
  fi
}

inline release(r) {
  if
  :: atomic { users[(r) % ROOM] == 1 -> assert(!destroyed && owner[(r) % ROOM] == (r) + 1); users[(r) % ROOM] = 0 };
     say_room()
  :: atomic {
       users[(r) % ROOM] != 1 -> assert(!destroyed && owner[(r) % ROOM] == (r) + 1 && users[(r) % ROOM] != 0);
       users[(r) % ROOM]--
     }
  fi
}

/* asserts that this is the first to let the parts of a turn go, or to get them */
inline own(t) {
  assert(!gone[t]);
  gone[t] = true
}

/* `n` parts, of a slot that the process owns */
inline let_go(s) {
  do
  :: j < n -> release(part[2 * (s) + j]); j++
  :: else -> j = 0; n = 0; break
  od;
  skip /* a loop must not end at a d_step */
}

/* What is free stays free until it is reserved, so that it does not matter when each is looked at. */
inline reserve(number, uses) {
  d_step {
    do
    :: oldest != next && users[oldest % ROOM] == 0 -> oldest++
    :: else -> break
    od;
    if
    :: next - oldest == ROOM -> number = NONE
    :: else ->
       number = next;
       next++;
       assert(users[number % ROOM] == 0 && pending[number % ROOM] == 0);
       owner[number % ROOM] = number + 1;
       bytes_of[number % ROOM] = 0;
       state[number % ROOM] = LOADING;
       users[number % ROOM] = (uses) + 1
    fi
  };
  skip
}

inline wait_for_room() {
  lock();
  wants_room = true;
  do
  :: stopped || halted -> go = false; break
  :: else ->
     if
     :: passed > swept -> go = true; break
     :: else
     fi;
     if
     :: users[oldest % ROOM] == 0 -> go = true; break
     :: else
     fi;
     d_step { room_asleep = true; locked = false };
     atomic { !room_asleep && !locked -> locked = true }
  od;
  skip;
  d_step { wants_room = false; locked = false }
}

inline begin_parts(t) {
  assert(reading[(t) % SLOTS] == 0);
  count[(t) % SLOTS] = 0;
  slot_turn[(t) % SLOTS] = t
}

inline claim(t) {
  d_step {
    seen = word[(t) % SLOTS];
    if
    :: (t) < swept || (IS(seen) != UNSEEN && TURN(seen) >= (t)) -> ok = false; seen = 0
    :: else ->
       ok = true;
       word[(t) % SLOTS] = WORD(t, CLAIMED);
       if
       :: IS(seen) == THERE -> own(TURN(seen)); n = count[(t) % SLOTS]
       :: else -> begin_parts(t); seen = 0
       fi
    fi;
    claimed[(t) % 2] = ok;
    dropped[(t) % 2] = !ok
  };
  if
  :: IS(seen) == THERE -> let_go((t) % SLOTS); d_step { seen = 0; begin_parts(t) }
  :: else
  fi
}

inline publish(t) {
  d_step {
    ok = (word[(t) % SLOTS] == WORD(t, CLAIMED));
    if
    :: ok && (t) < swept -> word[(t) % SLOTS] = WORD(t, TAKEN); ok = false
    :: ok && (t) >= swept -> word[(t) % SLOTS] = WORD(t, THERE)
    :: else
    fi;
    if
    :: !ok -> own(t); n = count[(t) % SLOTS]
    :: else
    fi
  };
  if
  :: !ok -> let_go((t) % SLOTS)
  :: else
  fi
}

inline sweep() {
  end_ = passed;
  swept = (swept + SLOTS < end_ -> end_ - SLOTS : swept);
  do
  :: swept < end_ ->
     d_step {
       seen = word[swept % SLOTS];
       ok = (IS(seen) == THERE && TURN(seen) <= swept);
       if
       :: ok -> own(TURN(seen)); word[swept % SLOTS] = WORD(TURN(seen), TAKEN); n = count[swept % SLOTS]
       :: else
       fi
     };
     if
     :: ok -> let_go(swept % SLOTS)
     :: else
     fi;
     swept++
  :: else -> break
  od;
  skip;
  d_step { seen = 0; end_ = 0 }
}

/* Counts a part of a turn, or one that will not come. */
inline settle(t, r) {
  if
  :: r != NONE ->
     if
     :: !claimed[(t) % 2] && !dropped[(t) % 2] -> claim(t)
     :: else
     fi;
     if
     :: dropped[(t) % 2] -> release(r)
     :: else ->
        d_step {
          assert(slot_turn[(t) % SLOTS] == t && reading[(t) % SLOTS] == 0);
          part[2 * ((t) % SLOTS) + count[(t) % SLOTS]] = r;
          count[(t) % SLOTS]++
        }
     fi
  :: else
  fi;
  left[(t) % 2]--;
  if
  :: left[(t) % 2] == 0 && claimed[(t) % 2] -> publish(t)
  :: else
  fi
}

inline submit() {
  if
  :: ANY(requests) ->
     atomic {
       !locked -> k = 0;
       do
       :: k < ROOM -> loading = loading + (requests[k] != 0); k++
       :: else -> break
       od;
       k = 0
     };
     d_step {
       k = 0;
       do
       :: k < ROOM ->
          if
          :: requests[k] != 0 -> pending[k] = requests[k]; requests[k] = 0
          :: else
          fi;
          k++
       :: else -> break
       od;
       k = 0
     }
  :: else
  fi
}

/* Shows the turns that have a part of the oldest read and wait for another: nobody could let it go. */
inline show_turns_of_oldest() {
  t = FIRST_TURN(l);
  do
  :: t <= LAST_TURN(l) ->
     if
     :: claimed[t % 2] && left[t % 2] != 0 ->
        d_step {
          ok = (part[2 * (t % SLOTS)] == oldest);
          if
          :: !ok && count[t % SLOTS] == 2 -> ok = (part[2 * (t % SLOTS) + 1] == oldest)
          :: else
          fi
        };
        if
        :: ok -> publish(t); d_step { claimed[t % 2] = false; dropped[t % 2] = true }
        :: else
        fi
     :: else
     fi;
     t++
  :: else -> t = 0; break
  od
}

inline fetch_read(r) {
  reserve(number, (OTHER_USER(r) == NONE -> 1 : 2));
  do
  :: number == NONE ->
     submit();
     show_turns_of_oldest();
     wait_for_room();
     if
     :: !go -> break
     :: else
     fi;
     sweep();
     reserve(number, (OTHER_USER(r) == NONE -> 1 : 2))
  :: else -> break
  od;
  if
  :: go ->
     settle(USER(r), number);
     if
     :: OTHER_USER(r) != NONE -> settle(OTHER_USER(r), number)
     :: else
     fi;
     if
     :: users[number % ROOM] == 1 -> release(number)
     :: else -> requests[number % ROOM] = number + 1
     fi;
     number = NONE
  :: else
  fi
}

inline fetch() {
  sweep();
  d_step {
    t = FIRST_TURN(l);
    do
    :: t <= LAST_TURN(l) -> left[t % 2] = PARTS(t); t++
    :: else -> break
    od;
    t = 0;
    r = FIRST_READ(l);
    go = true
  };
  do
  :: r <= l + 2 ->
     if
     :: go -> fetch_read(r)
     :: else
     fi;
     if
     :: !go ->
        settle(USER(r), NONE);
        if
        :: OTHER_USER(r) != NONE -> settle(OTHER_USER(r), NONE)
        :: else
        fi
     :: else
     fi;
     r++
  :: else -> break
  od;
  submit();
  d_step {
    t = 0;
    do
    :: t < 2 -> claimed[t % 2] = false; dropped[t % 2] = false; assert(left[t % 2] == 0); t++
    :: else -> break
    od;
    t = 0;
    r = 0;
    ok = false;
    go = false
  }
}

inline begin_asking() {
  asking = true;
  l = list;
  if
  :: cleared -> oldest = 0; next = 0; swept = 0; cleared = false
  :: else
  fi
}

proctype fetcher() {
  byte oldest, next, swept; /* the store's, but nobody else looks at them */
  byte l, t, r, number = NONE, j, n, k, seen, end_;
  byte left[2]; /* of a list; it has two turns at most, that follow each other */
  byte requests[ROOM];
  bool claimed[2], dropped[2];
  bool ok, go;
  do
  :: atomic { list < LISTS && LAST_TURN(list) < opened && !restarting && !ahead_stopped -> begin_asking() };
     fetch();
     d_step { list++; asking = false; l = 0 }
  :: atomic { list == LISTS && passed == TURNS && !swept_all && !restarting && !ahead_stopped -> begin_asking() };
     sweep();
     d_step { swept_all = true; asking = false; ok = false; l = 0 }
  :: ahead_stopped -> break
  od;
  fetchers_left--
}

proctype storage() {
  byte r, p, i_;
  do
  :: atomic {
       ANY(pending) && (!LAZY || cancelled) ->
       if
       :: pending[0] != 0 -> p = 0
       :: pending[1 % ROOM] != 0 -> p = 1 % ROOM
       :: pending[2 % ROOM] != 0 -> p = 2 % ROOM
       :: pending[3 % ROOM] != 0 -> p = 3 % ROOM
       fi;
       r = pending[p] - 1;
       assert(owner[p] == r + 1);
       pending[p] = 0;
       if
       :: bytes_of[p] = r + 1; state[p] = READY
       :: FAILS -> state[p] = FAILED
       fi;
       p = 0
     };
     release(r);
     atomic {
       !locked -> assert(!destroyed);
       loading--;
       wake_ended();
       r = 0
     }
  :: destroyed -> break
  od
}

inline take(t) {
  d_step {
    seen = word[(t) % SLOTS];
    go = false;
    if
    :: IS(seen) != UNSEEN && (TURN(seen) > (t) || seen == WORD(t, TAKEN)) -> seen = 0
    :: else ->
       word[(t) % SLOTS] = WORD(t, TAKEN);
       if
       :: IS(seen) == THERE ->
          own(TURN(seen));
          reading[(t) % SLOTS]++;
          n = count[(t) % SLOTS];
          go = (TURN(seen) == (t));
          assert(!go || slot_turn[(t) % SLOTS] == (t));
          seen = !go /* whether it is an older one's, that nobody took */
       :: else -> seen = 0
       fi
    fi
  };
  if
  :: seen != 0 -> let_go((t) % SLOTS); d_step { seen = 0; reading[(t) % SLOTS]-- }
  :: else
  fi
}

/* Waits for a read, and looks at its bytes if it was good. */
inline wait(r) {
  if
  :: d_step { state[(r) % ROOM] == READY -> assert(bytes_of[(r) % ROOM] == (r) + 1) }
  :: state[(r) % ROOM] == FAILED
  :: state[(r) % ROOM] == LOADING ->
     lock();
     do
     :: d_step { state[(r) % ROOM] == READY -> assert(bytes_of[(r) % ROOM] == (r) + 1); locked = false };
        break
     :: d_step { state[(r) % ROOM] == FAILED -> locked = false };
        break
     :: state[(r) % ROOM] == LOADING ->
        if
        :: d_step { stopped || halted -> locked = false };
           break
        :: d_step { !stopped && !halted -> ended_asleep[me] = true; locked = false };
           atomic { !ended_asleep[me] && !locked -> locked = true }
        fi
     od
  fi
}

proctype worker(byte me) {
  byte t, j, n, seen;
  bool go;
  do
  :: atomic { ticket < opened -> t = ticket; ticket++ };
     if
     :: take(t);
        if
        :: go ->
           do
           :: j < n -> wait(part[2 * (t % SLOTS) + j]); j++
           :: else -> j = 0; break
           od;
           let_go(t % SLOTS)
        :: else
        fi
     :: t >= UNTAKEN /* nobody takes this one */
     fi;
     d_step {
       done[t] = true;
       reading[t % SLOTS] = reading[t % SLOTS] - go;
       t = 0;
       go = false
     }
  :: ring_stopped -> break
  od;
  workers_left--
}

inline stop_all() {
  ring_stopped = true;
  atomic { !locked -> stopped = true; room_asleep = false; wake_ended() }
}

inline halt() {
  atomic { !locked -> halted = true; room_asleep = false; wake_ended() }
}

inline end_reads() {
  cancelled = true;
  do
  :: d_step { !locked && loading != 0 -> ended_asleep[WORKERS] = true };
     !ended_asleep[WORKERS]
  :: atomic { !locked && loading == 0 -> break }
  od;
  skip /* a loop must not end at a d_step */
}

inline open_turns() {
  opened = (SLOTS < TURNS -> SLOTS : TURNS)
}

inline begin_again() {
  if
  :: delivered != opened -> halt()
  :: else
  fi;
  do
  :: delivered == opened -> break
  :: delivered != opened && (done[delivered] || ring_stopped) ->
     if
     :: ring_stopped -> break
     :: else -> delivered++
     fi
  od;
  if
  :: delivered == opened ->
     restarting = true;
     halt();
     !asking;
     end_reads();
     d_step {
       k = 0;
       do
       :: k < SLOTS -> assert(reading[k] == 0); word[k] = 0; k++
       :: else -> break
       od;
       k = 0;
       do
       :: k < ROOM -> assert(pending[k] == 0); users[k] = 0; k++
       :: else -> break
       od;
       k = 0;
       do
       :: k < TURNS -> gone[k] = false; done[k] = false; k++
       :: else -> break
       od;
       k = 0;
       passed = 0;
       cleared = true /* `oldest`, `next` and `swept` too */
     };
     atomic { !locked -> halted = false };
     d_step {
       list = 0;
       swept_all = false;
       cancelled = false;
       begun_again = true;
       ticket = 0;
       delivered = 0;
       restarting = false;
       open_turns()
     }
  :: else
  fi
}

proctype consumer() {
  byte k, restarts, i_;
  open_turns();
  do
  :: ring_stopped -> break
  :: d_step { delivered < TURNS && done[delivered] && !ring_stopped -> delivered++; passed = delivered };
     say_room();
     if
     :: opened < TURNS -> opened++
     :: else
     fi
  :: restarts < RESTARTS -> restarts++; begin_again()
  :: delivered == TURNS && !LAZY ->
     swept_all || ring_stopped;
     end_reads();
     d_step {
       k = 0;
       do
       :: k < ROOM -> assert(ring_stopped || users[k] == 0); k++
       :: else -> break
       od;
       k = 0
     };
     break
  od;
  stop_all();
  ahead_stopped = true;
  fetchers_left == 0;
  end_reads();
  workers_left == 0;
  destroyed = true
}

/* Another thread's request_stop, at any moment or not at all. */
proctype stopper() {
  byte i_;
  if
  :: !LAZY || !RESTARTS || begun_again -> stop_all()
  :: !LAZY || destroyed
  fi
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < WORKERS -> run worker(i); i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < STORAGES -> run storage(); i++
    :: else -> break
    od;
    run consumer();
    run fetcher();
    if
    :: STOPS -> run stopper()
    :: !STOPS -> skip
    fi
  }
}

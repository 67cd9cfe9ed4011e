/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

   The protocol of include/penstock/storage/cache/block_folder.hpp for the model checker spin: every interleaving of
   PROCESSES processes that each read READS blocks of BLOCKS through a folder of SLOTS, up to DEATHS of which die at any
   step, and of one process more that begins when all others have ended, however they did.

   Checked: a read that finds the state of its slot unchanged has the bytes of the block that it meant, without a look
   at a checksum; nobody writes into a slot that another one fills; a block is fetched once, and once more for each
   death, if there is a slot for each block; nobody waits for ever (no invalid end state), whoever died; the one that
   begins last finds a folder that it can use.

   A death lets go of all locks, as the system does, and leaves everything else as it is. Operations on words are
   sequentially consistent here. The key of a slot is one word, and a chain is whether a slot can be found; that a chain
   which a death has cut is made anew is in `begin_change`. The bytes of a slot are one word, which is GARBAGE while
   they are written. Which slot goes is left open: a free one if there is one, otherwise any that is full.

   Not in it: threads of one process, which block_folder keeps apart with mutexes; blocks that are given up or thrown
   away, for a disk that is full or bytes that are damaged; a lock that cannot be had in time. */

#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef READS
#define READS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif

#define FREE 0
#define FILLING 1
#define FULL 2
#define NOBODY 255
#define GARBAGE 255
#define PHASE(s) ((s) & 3)
#define NEXT(s, phase) ((((s) >> 2) + 1) << 2 | (phase))

byte state[SLOTS];  /* a generation and a phase */
byte key[SLOTS];    /* a block and 1 */
bool held[SLOTS];   /* whether the slot that goes is none of these */
bool found_by[SLOTS];  /* whether it is in its chain */
byte bytes[SLOTS];
byte filler[SLOTS] = NOBODY;  /* who has the lock of a slot */
byte changer = NOBODY;        /* who has the lock of the folder */
bool changing;                /* the mark in the head */
byte fetched[BLOCKS];
byte deaths, ended;
bool kill[PROCESSES + 1];

/* what dead ones were filling */
inline sweep() {
  s = 0;
  do
  :: s < SLOTS ->
     if
     :: held[s] && filler[s] == NOBODY ->
        if
        :: PHASE(state[s]) == FULL -> held[s] = false
        :: else -> found_by[s] = false; state[s] = NEXT(state[s], FREE); held[s] = false
        fi
     :: else
     fi;
     s++
  :: else -> break
  od
}

inline begin_change() {
  atomic { changer == NOBODY -> changer = me };
  if
  :: changing ->
     s = 0;
     do
     :: s < SLOTS ->
        d_step {
          found_by[s] = false;
          if
          :: PHASE(state[s]) == FREE -> state[s] = NEXT(state[s], FREE); held[s] = false
          :: else ->
             /* of two with one block one is enough */
             if
             :: s > 0 && found_by[0] && key[0] == key[s] -> state[s] = NEXT(state[s], FREE); held[s] = false
             :: else ->
                if
                :: PHASE(state[s]) == FILLING -> held[s] = true
                :: else
                fi;
                found_by[s] = true
             fi
          fi
        };
        s++
     :: else -> break
     od;
     sweep()
  :: else
  fi;
  changing = true
}

inline end_change() {
  changing = false;
  changer = NOBODY
}

/* the folder's lock and that of the slot are held */
inline take(b) {
  found_by[at] = false;
  state[at] = NEXT(state[at], FILLING);
  held[at] = true;
  key[at] = (b) + 1;
  found_by[at] = true;
  seen = state[at]
}

inline ask(b) {
  mine = false;
  other = false;
  begin_change();
  at = NOBODY;
  d_step {
    s = 0;
    do
    :: s < SLOTS ->
       if
       :: found_by[s] && key[s] == (b) + 1 && PHASE(state[s]) != FREE -> at = s
       :: else
       fi;
       s++
    :: else -> break
    od;
    if
    :: at != NOBODY -> seen = state[at]
    :: else
    fi
  };
  if
  :: at != NOBODY && PHASE(seen) == FILLING ->
     if
     :: atomic { filler[at] == NOBODY -> filler[at] = me };
        if
        :: state[at] == seen -> take(b); mine = true
        :: else -> filler[at] = NOBODY
        fi
     :: filler[at] != NOBODY -> other = true
     fi
  :: at != NOBODY && PHASE(seen) != FILLING
  :: at == NOBODY ->
     if
     :: d_step { SLOTS == 1 -> s = (held[0] -> 1 : 0) }
     :: d_step { SLOTS == 2 -> s = (held[0] && held[SLOTS - 1] -> 1 : 0) }
     fi;
     if
     :: s == 1 -> sweep()
     :: else
     fi;
     if
     :: PHASE(state[0]) == FREE -> at = 0
     :: PHASE(state[SLOTS - 1]) == FREE -> at = SLOTS - 1
     :: PHASE(state[0]) != FREE && PHASE(state[SLOTS - 1]) != FREE && !held[0] -> at = 0
     :: PHASE(state[0]) != FREE && PHASE(state[SLOTS - 1]) != FREE && !held[SLOTS - 1] -> at = SLOTS - 1
     :: else
     fi;
     if
     :: at != NOBODY ->
        /* who has published it may not have let go of it */
        atomic { filler[at] == NOBODY -> filler[at] = me };
        take(b);
        mine = true
     :: else /* past the cache */
     fi
  fi;
  end_change()
}

inline fill(b) {
  fetched[b]++;
  assert(SLOTS < BLOCKS || fetched[b] <= 1 + deaths);
  assert(filler[at] == me && state[at] == seen);
  bytes[at] = GARBAGE;
  assert(filler[at] == me && state[at] == seen);
  bytes[at] = (b) + 1;
  assert(filler[at] == me && state[at] == seen);
  d_step {
    if
    :: state[at] == seen -> state[at] = (seen & 252) | FULL
    :: else
    fi
  };
  held[at] = false;
  filler[at] = NOBODY
}

inline read(b) {
  do
  :: /* without a lock */
     at = NOBODY;
     if
     :: found_by[0] -> at = 0
     :: SLOTS == 2 && found_by[SLOTS - 1] -> at = SLOTS - 1
     :: true
     fi;
     good = false;
     if
     :: at != NOBODY ->
        seen = state[at];
        if
        :: PHASE(seen) == FULL && key[at] == (b) + 1 ->
           if
           :: state[at] == seen ->
              copy = bytes[at];
              if
              :: state[at] == seen -> assert(copy == (b) + 1); good = true
              :: else
              fi
           :: else
           fi
        :: else
        fi
     :: else
     fi;
     if
     :: good -> break
     :: else
     fi;
     ask(b);
     if
     :: mine -> fill(b); break
     :: other -> (state[at] != seen || filler[at] == NOBODY)
     :: !mine && !other && at == NOBODY -> assert(me != PROCESSES); break /* past the cache */
     :: !mine && !other && at != NOBODY
     fi
  od
}

proctype process(byte me) {
  byte at, seen, copy, s, n, block;
  bool mine, other, good;
  {
    do
    :: n < READS ->
       if
       :: block = 0
       :: block = BLOCKS - 1
       fi;
       read(block);
       n++
    :: else -> break
    od
  } unless {
    atomic {
      kill[me] ->
      if
      :: filler[0] == me -> filler[0] = NOBODY
      :: else
      fi;
      if
      :: filler[SLOTS - 1] == me -> filler[SLOTS - 1] = NOBODY
      :: else
      fi;
      if
      :: changer == me -> changer = NOBODY
      :: else
      fi
    }
  };
  ended++
}

proctype killer() {
  byte who;
  do
  :: deaths < DEATHS ->
     if
     :: who = 0
     :: who = PROCESSES - 1
     fi;
     atomic { !kill[who] -> deaths++; kill[who] = true }
  :: break
  od
}

init {
  atomic {
    run process(0);
    run process(PROCESSES - 1);
    run killer()
  };
  ended == PROCESSES;
  run process(PROCESSES)
}

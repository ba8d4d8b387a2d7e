/*
 * One job, two workers, a dispatcher, a queue and a host: claim, promise, fence, follow, forget.
 * README.md beside this file says how to run it, what it leaves out, and which code each process stands for.
 */
#ifndef FAULTS
#define FAULTS 2 /* how much goes wrong, in all */
#endif
#ifndef PINGS
#define PINGS 1 /* how many pings there are, in all */
#endif
#define SERVES 3

mtype = { queued, running, succeeded, failed, cancelled }; /* jobs.state */
mtype = { outcome_unknown, worker_lost, unconfirmed };     /* jobs.error, where the command may start or run on later */
mtype = { absent, stopped, started };                      /* started/ID: no file, `-stopped -`, `TOKEN ATTEMPT` */

/* The job's row, as its request committed it. lease_token: 0 is null, 1 and 2 are of the workers. */
mtype state = queued, error;
bool dispatched = true, finished, cancel_requested, run_at, run_removed;
byte epoch = 1, lease_token, run_place, stdout_bytes;
bool hasExpired;              /* the lease of the worker that has the token */

chan queue = [2] of { byte }; /* BullMQ: the epochs of entries */

/* Of each worker: its connection (the number of its serve, from 1), and whether it has an attempt. */
byte connection[3];
bool isActing[3], isCrashed[3];
bool isConfirmed[3];          /* a look at the row since the last pong, or since hello, has found the lease held */

/* The host. Its command prints one byte. */
byte place;                   /* its boot and its folder of fences, as hello tells them */
mtype fence = absent;
bool isRunning, hasEnd;       /* the command with its supervisor; the file end.* */
bool wasStopped;              /* the file stopped */
bool isForgotten;             /* the run's directory is removed, its fence touched */
bool isAlive[SERVES];         /* a serve */
bool isOpen[SERVES];          /* its standard input has not ended */
byte requests[SERVES];        /* lines `run` in its pipes */
bool isAsked[SERVES];         /* a child has its line `run`, and no claim yet */
bool hasChild[SERVES];        /* a child has its attempt's claim and has not tried to create the fence yet */
bool isOlder[SERVES];         /* its birth, the file born or renewed, is not newer than the forgotten fence */
bool isMarked[SERVES];        /* there is a file mark, of a ping */
bool isMarkOlder[SERVES];     /* which is not newer than the forgotten fence */
bool hasConfirm[SERVES];      /* a line `confirm` in its pipes, */
byte before_confirm[SERVES];  /* and lines `run` before it */

/* Known to the checks and the surroundings alone. */
byte holder, starts, faults = FAULTS, pings = PINGS;
mtype before;                 /* while the claim is not on the database's disk: the state before it */
bool isEndless;               /* the command ends only when it is stopped */

/* ---- Guards. Each of these names, defined for spin, makes a mutant that lacks one: Spin has to find what comes of it. ---- */

#ifdef TOKEN_UNCHECKED /* a write of a worker does not check the fencing token */
#define leasedBy(w) (!finished)
#else
#define leasedBy(w) (lease_token == w && !finished)
#endif
#ifdef ROW_UNSEEN /* a worker does not look at the row again before it asks over a new connection */
#define isLeased(w) true
#else
#define isLeased(w) (lease_token == w && !finished)
#endif
#ifdef SERVE_UNSEEN /* a fence does not wait for the serves that may have a late request */
#define isOlderAlive false
#else
#define isOlderAlive (isOlder[0] || isOlder[1] || isOlder[2])
#endif
#ifdef CLAIM_UNSEEN /* nor for the children that have their claim */
#define isClaimed false
#else
#define isClaimed (hasChild[0] || hasChild[1] || hasChild[2])
#endif
#ifdef CONFIRM_UNSEEN /* a worker does not look at the row again once it has confirmed a ping */
#define looksAgain(w) skip
#else
#define looksAgain(w) isConfirmed[w] = false
#endif
#ifdef CHILD_UNSETTLED /* a serve renews its birth while a child that it has asked has no claim */
#define isSettled(s) true
#else
#define isSettled(s) (!isAsked[s])
#endif
/* RUN_AT_LATE: the host is asked before run_at is committed. FORGOTTEN_EARLY: the run is forgotten before the job's end is
 * committed. ENTRY_UNSEEN: the dispatcher does not look for entries that the queue has lost. CLAIM_KEPT: a worker does not
 * release a claim that it has no attempt for. */

/* ---- The row ---- */

inline unlease() { lease_token = 0; hasExpired = false; before = 0; holder = 0 }

/* A write of a worker that leasedBy() has let pass. */
inline written(w) { assert(holder == w); before = 0 }

inline finish(how, why) {
  assert(!finished);
  assert(how != succeeded || (starts == 1 && stdout_bytes == 1));
  finished = true; state = how; error = why;
  unlease()
}

/* ---- The host: workers/host-agent/sh ---- */

#define isLost (fence == started && !isRunning && !hasEnd)
#define isFree(s) (!isAlive[s] && !isAsked[s] && !hasChild[s])
#define canConnect (isFree(0) || isFree(1) || isFree(2))

inline openServe(s) {
  s = (isFree(0) -> 0 : (isFree(1) -> 1 : 2));
  isAlive[s] = true; isOpen[s] = true
}

/* The serve still reads what is in its pipes. */
inline disconnect(w) {
  if
  :: connection[w] -> isOpen[connection[w] - 1] = false; connection[w] = 0
  :: else
  fi
}

inline killServe(s) {
  isAlive[s] = false; isOpen[s] = false; requests[s] = 0; isOlder[s] = false;
  isMarked[s] = false; isMarkOlder[s] = false; hasConfirm[s] = false; before_confirm[s] = 0;
  if
  :: connection[1] == s + 1 -> connection[1] = 0
  :: connection[2] == s + 1 -> connection[2] = 0
  :: else
  fi
}

inline stopRun() { /* stop_run */
  if
  :: fence == absent -> fence = stopped
  :: isRunning -> wasStopped = true; isRunning = false; hasEnd = true
  :: else
  fi
}

inline forgetRun() { /* forget */
  if
  :: fence != absent ->
    fence = started; hasEnd = false; isForgotten = true;
    isOlder[0] = isAlive[0]; isOlder[1] = isAlive[1]; isOlder[2] = isAlive[2];
    isMarkOlder[0] = isMarked[0]; isMarkOlder[1] = isMarked[1]; isMarkOlder[2] = isMarked[2]
  :: else
  fi
}

#define isDue (isForgotten && !isOlderAlive && !isClaimed)

inline cleanUp() { /* takes the claims of those that dead serves have asked */
  isAsked[0] = isAsked[0] && isAlive[0]; isAsked[1] = isAsked[1] && isAlive[1]; isAsked[2] = isAsked[2] && isAlive[2]
}

inline sweep() { fence = absent; isForgotten = false }

/* serve.sh, and the child of the attempt that it has prepared (attempt.sh) */
proctype serve(byte s) {
end:
  do
  :: d_step { requests[s] && !isAsked[s] && !hasChild[s] -> /* start_run */
      requests[s]--; isAsked[s] = true;
      before_confirm[s] = (before_confirm[s] -> before_confirm[s] - 1 : 0)
    }
  :: d_step { isAsked[s] -> isAsked[s] = false; hasChild[s] = true } /* create_exclusive "$dir/claim" */
  :: d_step { hasChild[s] -> /* create_exclusive "$base/started/$id" */
      hasChild[s] = false;
      if
      :: fence == absent ->
        fence = started; isRunning = true; starts++;
        assert(starts == 1);
        assert(!finished || error);
        assert(!run_removed || error == outcome_unknown)
      :: else
      fi
    }
  :: d_step { isAlive[s] && hasConfirm[s] && !before_confirm[s] -> /* confirm */
      if
      :: isSettled(s) -> isOlder[s] = isMarkOlder[s] /* renew_birth */
      :: else
      fi;
      isMarked[s] = false; isMarkOlder[s] = false; hasConfirm[s] = false
    }
  :: d_step { isAlive[s] && !isOpen[s] && !requests[s] -> /* end_serve */
      killServe(s);
      cleanUp();
      if
      :: isDue -> sweep()
      :: else
      fi
    }
  :: d_step { isAlive[s] && isDue -> cleanUp(); sweep() } /* some seconds after it began, and after a ping */
  od
}

/* A ping over the connection of worker w (client.ts), and renew_birth */
proctype ping(byte w) {
  byte s;
end:
  do
  :: d_step { pings && connection[w] && (hasEnd || isForgotten) && !isMarked[connection[w] - 1] -> /* ping */
      pings--; s = connection[w] - 1;
      isMarked[s] = true; s = 0
    }
  :: d_step { connection[w] && isMarked[connection[w] - 1] && !hasConfirm[connection[w] - 1] -> /* its pong */
      s = connection[w] - 1;
      looksAgain(w);
      hasConfirm[s] = true; before_confirm[s] = requests[s]; s = 0
    }
  od
}

/* The command and its supervisor (attempt.sh) */
proctype command() {
end:
  do
  :: d_step { isRunning && !isEndless -> isRunning = false; hasEnd = true }
  od
}

/* ---- The service ---- */

/* dispatcher.ts */
proctype dispatcher() {
end:
  do
  :: atomic { lease_token && hasExpired -> /* reclaimExpiredLeases */
      dispatched = false;
      if
      :: unlease()
      :: finish(failed, worker_lost) /* after MAX_CONSECUTIVE_LOSSES */
      fi
    }
#ifndef ENTRY_UNSEEN
  :: d_step { !finished && !lease_token && dispatched && !(queue ?? [eval(epoch)]) -> /* redispatchUnclaimed */
      dispatched = false
    }
#endif
  :: d_step { !finished && !lease_token && !dispatched && nfull(queue) -> /* dispatchWaiting */
      epoch++; dispatched = true;
      queue ! epoch
    }
  od
}

inline recordIntent() {
  if
  :: leasedBy(w) -> written(w); run_at = true; run_place = place
  :: else -> goto over
  fi
}

/* claim-jobs.ts, leased-updates.ts, end-jobs.ts, held-claims.ts, run-job.ts, attempt.ts, run-on-host.ts and run-state.ts, whose phases are the labels */
proctype worker(byte w) {
  byte e, stored;
  bool isRequested, isCancelled, isRequestSent, isStopSent, mayBeStopped;
  mtype how, why;

waiting:
end:
  do
  :: d_step { connection[w] -> disconnect(w) } /* idle for long */
#ifndef CLAIM_KEPT
  :: d_step { lease_token == w && !hasExpired -> unlease(); dispatched = false } /* add() of abandoned-claims.ts */
#endif
  :: atomic { queue ? e ->
      if
      :: e == epoch && !lease_token && !finished -> /* claimJob */
        before = state; state = running; lease_token = w; holder = w;
        isRequested = run_at; isCancelled = cancel_requested; stored = stdout_bytes;
        isConfirmed[w] = (connection[w] != 0); e = 0;
        if
        :: isActing[w] = true; goto connecting
        :: faults -> faults-- /* the answer is lost */
        fi
      :: else -> e = 0
      fi
    }
  od;
  {
connecting:
    do
    :: atomic { cancel_requested && lease_token == w && !isCancelled -> isCancelled = true } /* HeldClaims */
    :: atomic { lease_token != w -> goto over }
    :: atomic { connection[w] || canConnect ->
        if
        :: connection[w]
        :: !connection[w] -> openServe(e); connection[w] = e + 1; e = 0; isConfirmed[w] = false
        fi;
        if
        :: isRequested -> goto following
        :: !isRequested && isCancelled -> how = cancelled; goto ending
        :: !isRequested && !isCancelled -> goto recordingIntent
        fi
      }
    :: atomic { !connection[w] -> /* denied, or unreachable for too long */
        how = (isCancelled -> cancelled : failed);
        why = (!isRequested -> 0 : (isCancelled -> unconfirmed : outcome_unknown)); goto ending
      }
    :: atomic { !connection[w] && faults -> faults--; /* unreachable: releaseJob */
        if
        :: leasedBy(w) -> written(w); unlease(); dispatched = false
        :: else
        fi;
        goto over
      }
    od;

recordingIntent:
    atomic {
#ifndef RUN_AT_LATE
      recordIntent();
#endif
      isRequested = true
    };
    if
    :: atomic { cancel_requested && lease_token == w -> how = cancelled; why = unconfirmed; goto ending }
    :: true
    fi;

requesting:
    atomic { /* assertLeased(confirmedAt) */
      if
      :: isConfirmed[w]
      :: !isConfirmed[w] && isLeased(w) ->
        hasExpired = hasExpired && lease_token != w; /* it renews its lease */
        isConfirmed[w] = true
      :: else -> goto over
      fi
    };
    atomic {
      if
      :: connection[w] && isConfirmed[w] -> requests[connection[w] - 1]++; isRequestSent = true
      :: connection[w] && !isConfirmed[w] -> goto requesting /* it was pinged meanwhile */
      :: else
      fi;
#ifdef RUN_AT_LATE
      recordIntent()
#endif
    };

following:
    do
    :: atomic { cancel_requested && lease_token == w && !isCancelled -> isCancelled = true }
    :: atomic { lease_token != w -> goto over }
    :: atomic { !connection[w] -> isRequestSent = false; isStopSent = false; goto connecting }
    :: atomic { connection[w] && isCancelled && !isStopSent ->
        stopRun(); isStopSent = true; mayBeStopped = wasStopped
      }
    :: atomic { connection[w] && fence == absent && !isRequestSent && (!isCancelled || isStopSent) -> /* onNoRecord */
        if
        :: isCancelled -> how = cancelled; why = (run_place == place -> 0 : unconfirmed); goto ending
        :: !isCancelled && run_place == place -> goto requesting
        :: !isCancelled -> how = failed; why = outcome_unknown; goto ending /* another place, or half a day later */
        fi
      }
    :: atomic { connection[w] && fence == stopped ->
        how = cancelled; why = (run_place == place -> 0 : unconfirmed); goto ending
      }
    :: atomic { connection[w] && isLost -> how = failed; why = outcome_unknown; goto ending }
    :: atomic { connection[w] && (isRunning || hasEnd) && !stored -> /* OutputWriter */
        if
        :: leasedBy(w) ->
          written(w);
          assert(stored == stdout_bytes);
          stdout_bytes++; stored++;
          if
          :: true
          :: faults -> faults--; goto over /* the answer is lost */
          fi
        :: else -> goto over
        fi
      }
    :: atomic { connection[w] && hasEnd && stored && (!isCancelled || isStopSent) ->
#ifdef FORGOTTEN_EARLY
        forgetRun();
#endif
        how = (mayBeStopped -> cancelled : succeeded); goto ending
      }
    od;

ending:
    atomic {
      if
      :: leasedBy(w) ->
        written(w); finish(how, why);
        if
        :: true
        :: faults -> faults--; goto ending /* the answer is lost */
        fi
      :: else
      fi;
      goto over
    }
  } unless { isCrashed[w] };

over:
  atomic {
    if
    :: lease_token == w && isCrashed[w] -> hasExpired = true
    :: else
    fi;
    isActing[w] = false; isCrashed[w] = false;
    e = 0; stored = 0; how = 0; why = 0;
    isConfirmed[w] = false; isRequested = false; isCancelled = false; isRequestSent = false; isStopSent = false;
    mayBeStopped = false;
    goto waiting
  }
}

/* Until LIMIT_COMMAND_SECONDS have passed, which stop a command that does not end. */
#define mayKeepRunning (error == outcome_unknown && !cancel_requested && !isEndless)

#define isAnyOpen (isOpen[0] || isOpen[1] || isOpen[2])

/* finished-run-remover.ts, over any connection */
proctype remover() {
  byte s;
end:
  do
  :: atomic { finished && run_at && !run_removed && !(isRunning && mayKeepRunning) && (isAnyOpen || canConnect) ->
      if
      :: isAnyOpen
      :: canConnect -> openServe(s); isOpen[s] = false; s = 0
      fi;
      if
      :: mayKeepRunning && !isLost
      :: else -> stopRun()
      fi;
      forgetRun();
      if
      :: run_removed = true
      :: faults -> faults-- /* it dies before it has told the row */
      fi
    }
  od
}

/* ---- The surroundings ---- */

proctype trouble() {
  byte e;
end:
  do
  :: d_step { faults && lease_token && !hasExpired -> faults--; hasExpired = true } /* a pause */
  :: d_step { faults && isActing[1] && !isCrashed[1] -> faults--; isCrashed[1] = true; disconnect(1) }
  :: d_step { faults && isActing[2] && !isCrashed[2] -> faults--; isCrashed[2] = true; disconnect(2) }
  :: d_step { faults && connection[1] -> faults--; disconnect(1) }
  :: d_step { faults && connection[2] -> faults--; disconnect(2) }
  :: d_step { faults && isAlive[0] -> faults--; killServe(0) }
  :: d_step { faults && isAlive[1] -> faults--; killServe(1) }
  :: d_step { faults && isAlive[2] -> faults--; killServe(2) }
  :: d_step { faults && before -> faults--; state = before; unlease() } /* Postgres crashes */
  :: d_step { faults && nempty(queue) -> faults--; queue ? e; e = 0 } /* lost */
  :: d_step { faults && nempty(queue) && nfull(queue) -> faults--; queue ? <e>; queue ! e; e = 0 } /* repeated */
  :: d_step { faults && full(queue) -> faults--; queue ? e; queue ! e; e = 0 } /* reordered */
  :: atomic { faults -> /* the host is started anew */
      faults--; place++;
      killServe(0); killServe(1); killServe(2);
      isAsked[0] = false; isAsked[1] = false; isAsked[2] = false;
      hasChild[0] = false; hasChild[1] = false; hasChild[2] = false; isRunning = false;
      if
      :: true
      :: fence = absent; isForgotten = false; hasEnd = false; wasStopped = false /* without its files */
      fi
    }
  od
}

init {
  atomic {
    queue ! epoch;
    run serve(0); run serve(1); run serve(2); run command();
    run dispatcher(); run worker(1); run worker(2); run ping(1); run ping(2); run remover(); run trouble();
    do
    :: faults -> faults-- /* less may go wrong, too */
    :: break
    od;
    if
    :: isEndless = true
    :: true
    fi
  };
  if
  :: !isEndless
  :: atomic { /* cancelJobs */
      if
      :: finished
      :: !finished && state == queued -> finish(cancelled, 0)
      :: !finished && state != queued -> cancel_requested = true; before = 0
      fi
    }
  fi
}

ltl ends { <> (finished && (run_removed || !run_at)) }

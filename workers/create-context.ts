import { newWorkerId } from '../shared/jobs/worker-id.ts';
import type { ServiceContext } from '../shared/service/open-service.ts';
import type { WorkerContext } from './context.ts';
import { HeldClaims } from './engine/held-claims.ts';
import { JobGroups } from './engine/job-groups.ts';
import { WorkerMetrics } from './engine/worker-metrics.ts';
import { FinishedRunRemover } from './runs/finished-run-remover.ts';
import { SessionPool } from './ssh/session-pool.ts';

export function createContext(service: ServiceContext): WorkerContext {
  const { config, log, database, notifications } = service;
  const id = newWorkerId();
  const metrics = new WorkerMetrics();
  const sessions = new SessionPool({
    id,
    config,
    database,
    notifications,
    log,
    metrics,
    onAgentConnection: session => finishedRuns.removeOnConnection(session),
    isNeeded: sid => finishedRuns.hasGathered(sid),
  });
  const finishedRuns = new FinishedRunRemover({
    database,
    log,
    limitSeconds: config.LIMIT_COMMAND_SECONDS,
    use: (...given) => sessions.use(...given),
    mayUse: sid => sessions.mayUse(sid),
  });
  return {
    ...service,
    id,
    claims: new HeldClaims({ id, database, notifications, log, metrics }),
    groups: new JobGroups({ id, database, notifications }),
    metrics,
    sessions,
    finishedRuns,
  };
}

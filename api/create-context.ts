import type { ServiceContext } from '../shared/service/open-service.ts';
import { listSettings } from '../shared/settings/list-settings.ts';
import { RequestRates } from './concurrency/request-rates.ts';
import { ResponseQuota } from './concurrency/response-quota.ts';
import type { ApiContext, RequiredSetting } from './context.ts';
import { RequestMemory } from './http/request-memory.ts';
import { SendBuffers } from './http/send-buffers.ts';
import { AuditRates } from './identity/audit-rates.ts';
import { CredentialCache } from './identity/credential-cache.ts';
import { CredentialRates } from './identity/credential-rates.ts';
import { identifyAfterWait } from './identity/identify-sender.ts';
import { openOidc } from './identity/oidc/oidc.ts';
import { OwnPasswordChanges } from './identity/own-password-changes.ts';
import { PasswordVerifier } from './identity/password-verifier.ts';
import { Revocations } from './identity/revocations.ts';
import { OpenJobCounts } from './jobs/requests/open-job-counts.ts';
import { JobWatch } from './jobs/streaming/job-watch.ts';
import { ApiMetrics } from './monitoring/api-metrics.ts';
import { EventLog } from './monitoring/event-log.ts';
import { RawJsonBodies } from './raw-json/raw-json-bodies.ts';
import { ColumnCache } from './tables/column-cache.ts';
import { TableReader } from './tables/table-reader.ts';
import { BodyStore } from './uploads/body-store.ts';

/** @param environment all settings as texts, for GET /settings. */
export function createContext(
  service: ServiceContext<RequiredSetting>,
  environment: Record<string, string | undefined>,
): ApiContext {
  const { config, log, database, notifications, objects, stopping } = service;
  const requestMemory = new RequestMemory(
    res => identifyAfterWait(context, { req: res.req, res }),
    config.LIMIT_BODY_SECONDS * 1_000,
  );
  const revocations = new Revocations(notifications);
  const context: ApiContext = {
    ...service,
    settings: listSettings(environment),
    bodyStore: new BodyStore(objects, config.LIMIT_FREE_BYTES),
    jobWatch: new JobWatch({ database, notifications, log }),
    openJobCounts: new OpenJobCounts(config.LIMIT_OPEN_JOBS),
    longPollQuota: new ResponseQuota('long-poll', config.LIMIT_STREAMS),
    requestMemory,
    sendBuffers: new SendBuffers(),
    columnCache: new ColumnCache(),
    tableReader: new TableReader(objects),
    rawJson: new RawJsonBodies(config, requestMemory),
    passwords: new PasswordVerifier(database, {
      failedLogins: config.LIMIT_FAILED_LOGINS,
      stopping,
    }),
    requestRates: new RequestRates(config.LIMIT_REQUESTS),
    passwordChanges: new OwnPasswordChanges(),
    credentialRates: new CredentialRates(),
    auditRates: new AuditRates(),
    oidc: openOidc(config),
    credentialCache: new CredentialCache(revocations),
    revocations,
    metrics: new ApiMetrics(),
    events: new EventLog(config),
  };
  return context;
}

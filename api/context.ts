import type { ServiceContext } from '../shared/service/open-service.ts';
import type { SettingInForce } from '../shared/settings/list-settings.ts';
import type { RequestRates } from './concurrency/request-rates.ts';
import type { ResponseQuota } from './concurrency/response-quota.ts';
import type { RequestMemory } from './http/request-memory.ts';
import type { SendBuffers } from './http/send-buffers.ts';
import type { AuditRates } from './identity/audit-rates.ts';
import type { CredentialCache } from './identity/credential-cache.ts';
import type { CredentialRates } from './identity/credential-rates.ts';
import type { Oidc } from './identity/oidc/oidc.ts';
import type { OwnPasswordChanges } from './identity/own-password-changes.ts';
import type { PasswordVerifier } from './identity/password-verifier.ts';
import type { Revocations } from './identity/revocations.ts';
import type { OpenJobCounts } from './jobs/requests/open-job-counts.ts';
import type { JobWatch } from './jobs/streaming/job-watch.ts';
import type { ApiMetrics } from './monitoring/api-metrics.ts';
import type { EventLog } from './monitoring/event-log.ts';
import type { RawJsonBodies } from './raw-json/raw-json-bodies.ts';
import type { ColumnCache } from './tables/column-cache.ts';
import type { TableReader } from './tables/table-reader.ts';
import type { BodyStore } from './uploads/body-store.ts';

/** The settings without which no API starts, besides DATABASE_URL. */
export type RequiredSetting = 'SECRET_KEY' | 'SEAL_PUBLIC_KEY';

/** What an API process is made of; built once by create-context.ts. */
export interface ApiContext extends ServiceContext<RequiredSetting> {
  /** For GET /settings. */
  settings: SettingInForce[];
  bodyStore: BodyStore;
  jobWatch: JobWatch;
  openJobCounts: OpenJobCounts;
  /** Requests that wait for a job which they did not start. */
  longPollQuota: ResponseQuota;
  passwords: PasswordVerifier;
  /** All requests of each user. */
  requestRates: RequestRates;
  passwordChanges: OwnPasswordChanges;
  credentialRates: CredentialRates;
  auditRates: AuditRates;
  /** Undefined without OIDC_ISSUER. */
  oidc: Oidc | undefined;
  credentialCache: CredentialCache;
  revocations: Revocations;
  rawJson: RawJsonBodies;
  requestMemory: RequestMemory;
  sendBuffers: SendBuffers;
  columnCache: ColumnCache;
  tableReader: TableReader;
  metrics: ApiMetrics;
  events: EventLog;
  /** Aborted when the process is asked to stop: requests that wait are answered at once. */
  stopping: AbortSignal;
}

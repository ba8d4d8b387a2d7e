import type { ProcessLifecycle } from '../../shared/process-lifecycle.ts';

/** What main.ts hands to a command. */
export interface CommandCall {
  life: ProcessLifecycle;
  environment: Record<string, string | undefined>;
}

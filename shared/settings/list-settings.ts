import { isSecretSetting } from '../secrets/redact.ts';
import type { Setting } from './setting.ts';
import { SETTINGS } from './settings.ts';

/** A setting as a process has it. */
export interface SettingInForce {
  name: string;
  /** As it would stand in the environment; null where it is a secret, or not set. */
  value: string | null;
  from: 'environment' | 'default' | 'unset';
  secret: boolean;
  meaning: string;
}

/** Every setting, in the order of docs/settings.md. */
export function listSettings(environment: Record<string, string | undefined>): SettingInForce[] {
  return Object.entries<Setting>(SETTINGS).map(([name, { default: otherwise, meaning }]) => {
    const given = environment[name] || undefined;
    const value = given ?? otherwise ?? null;
    // A setting that is always a secret is one also where it is not set.
    const secret = isSecretSetting(name, value ?? 'x');
    const from = given === undefined ? (value === null ? 'unset' : 'default') : 'environment';
    return { name, value: secret ? null : value, from, secret, meaning };
  });
}

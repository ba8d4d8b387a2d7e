import { canInstallPython } from '../../../scripts/install-python.ts';
import { findSchemathesis, SCHEMATHESIS } from '../../../scripts/programs.ts';
import type { SkipReason } from '../skip.ts';

/** Undefined when Schemathesis is on this machine, and otherwise why the test has to be skipped. */
export function missingSchemathesis(): SkipReason | undefined {
  if (findSchemathesis() !== undefined) return undefined;
  return {
    reason: `needs Schemathesis (python3-venv, schemathesis==${SCHEMATHESIS})`,
    obtainable: canInstallPython(),
  };
}

import { readFileSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const OWN_STACK = /\b(startStack\(|alone:|workers:|env\b)/;

/**
 * Files with stacks of their own first, which are long, then unit tests that run programs, files that share a stack and
 * other unit tests. Files of one project, and files that share a stack, stand together: a worker process keeps what it has.
 */
export class TestOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ranks = new Map(files.map(file => [file, rank(file)]));
    return (await super.sort(files)).sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
  }
}

function rank({ project, moduleId }: TestSpecification): number {
  if (project.name === 'programs') return 1;
  if (project.name === 'unit') return 3;
  return OWN_STACK.test(readFileSync(moduleId, 'utf8')) ? 0 : 2;
}

import { type StdioOptions, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../shared/process/package-root.ts';
import {
  findPythonGenerator,
  findTypeScriptGenerators,
  installClientGenerators,
} from './client-generators.ts';
import { FORMAT_READERS, findFormatReaders, installFormatReaders } from './format-readers.ts';
import { findNode, installNode } from './install-node.ts';
import { canInstallPython, installPython } from './install-python.ts';
import {
  BUILT_PROGRAMS,
  type BuiltProgram,
  findProgram,
  findSchemathesis,
  PROGRAM_CACHE,
  SCHEMATHESIS,
  SCHEMATHESIS_FOLDER,
  TEST_PROGRAMS,
  type TestProgram,
} from './programs.ts';
import { installPythonClientTests, listTestPythons } from './python-client.ts';

const POLICY = '/usr/sbin/policy-rc.d';
const MARK = '# made by the tests of Windlass';

/** True where missing programs can be installed: by root, with apt-get. */
export function canInstall(): boolean {
  return process.getuid?.() === 0 && findProgram('apt-get') !== undefined;
}

/** Installs or builds what tests use and this machine lacks, as far as it can, and says what it does. May take minutes. */
export function setUpPrograms(): void {
  const wanted = listMissingPrograms();
  if (wanted.length > 0 && canInstall()) {
    console.error(`Installing what tests use and this machine lacks: ${wanted.join(', ')} …`);
    installPrograms(wanted);
  }
  const unbuilt = listUnbuiltPrograms();
  if (unbuilt.length > 0 && canBuild()) {
    console.error(`Building what tests use, once, a few minutes: ${unbuilt.join(', ')} …`);
    buildPrograms(unbuilt);
  }
  if (findSchemathesis() === undefined && canInstallPython()) {
    console.error('Installing what tests use, once: Schemathesis …');
    installSchemathesis();
  }
  if (isGeneratorMissing()) {
    console.error('Installing what tests use, once: generators of clients …');
    installClientGenerators();
  }
  if (findFormatReaders() === undefined && canInstallPython()) {
    console.error("Installing what tests use, once: Python's readers of formats …");
    installFormatReaders();
  }
  if (findNode(26) === undefined) {
    console.error('Installing what tests use, once: Node 26, for the binary …');
    installNode(26);
  }
  if (listTestPythons().some(({ installed }) => !installed)) {
    console.error('Installing what tests use, once: what the client in Python needs …');
    installPythonClientTests();
  }
}

/** What tests use and this machine lacks, a line each that says where it comes from. */
export function listAbsent(): string[] {
  const lines = [
    ...listMissingPrograms().map(name => `${name} (Debian: ${TEST_PROGRAMS[name]})`),
    ...listUnbuiltPrograms().map(name => `${name} (go install ${BUILT_PROGRAMS[name]})`),
  ];
  if (findSchemathesis() === undefined) {
    lines.push(`Schemathesis (Python: schemathesis==${SCHEMATHESIS})`);
  }
  if (isGeneratorMissing()) lines.push('Generators of clients (scripts/client-generators)');
  if (findFormatReaders() === undefined)
    lines.push(`Python's readers of formats (${FORMAT_READERS})`);
  if (findNode(26) === undefined) lines.push('Node 26, for the binary (scripts/node-26)');
  for (const { list, version, installed } of listTestPythons())
    if (!installed)
      lines.push(`Packages of Python ${version} (clients/python/tests/requirements/${list}.txt)`);
  return lines.map(line => `Not on this machine: ${line}.`);
}

const isGeneratorMissing = () =>
  findTypeScriptGenerators() === undefined || findPythonGenerator() === undefined;

function listMissingPrograms(): TestProgram[] {
  const names = Object.keys(TEST_PROGRAMS) as TestProgram[];
  return names.filter(name => findProgram(name) === undefined);
}

/** Installs the Debian packages of these programs, as far as they are to be had. Starts no service. */
function installPrograms(names: TestProgram[]): void {
  const packages = [...new Set(names.map(name => TEST_PROGRAMS[name]))];
  const removePolicy = forbidServiceStarts();
  try {
    const arguments_ = ['install', '-y', '-qq', '--no-install-recommends'];
    if (aptGet([...arguments_, ...packages])) return;
    aptGet(['update', '-qq']);
    if (aptGet([...arguments_, ...packages])) return;
    // One package that this Debian lacks must not keep the others away.
    for (const name of packages) aptGet([...arguments_, name]);
  } finally {
    removePolicy();
  }
}

/** True where missing Go programs can be built; needs no root. */
export function canBuild(): boolean {
  return findProgram('go') !== undefined;
}

function listUnbuiltPrograms(): BuiltProgram[] {
  const names = Object.keys(BUILT_PROGRAMS) as BuiltProgram[];
  return names.filter(name => findProgram(name) === undefined);
}

/** Builds these into the cache folder, each visible there only when it is whole. Takes minutes; needs the network. */
function buildPrograms(names: BuiltProgram[]): void {
  mkdirSync(PROGRAM_CACHE, { recursive: true });
  for (const name of names) {
    const folder = mkdtempSync(join(PROGRAM_CACHE, '.new-'));
    try {
      const env = { ...process.env, GOBIN: folder };
      const stdio: StdioOptions = ['ignore', 2, 2];
      const { status } = spawnSync('go', ['install', BUILT_PROGRAMS[name]], { stdio, env });
      if (status === 0) renameSync(join(folder, name), join(PROGRAM_CACHE, name));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

/** Installs Schemathesis into the cache folder. Takes a minute; needs the network. */
function installSchemathesis(): void {
  const list = fileURLToPath(new URL('scripts/schemathesis.txt', packageRoot));
  installPython(SCHEMATHESIS_FOLDER, list);
}

function aptGet(args: string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  return spawnSync('apt-get', args, { stdio: ['ignore', 2, 2], env }).status === 0;
}

/**
 * Debian starts a server as it installs it, unless policy-rc.d forbids it. Ours forbids it only while this process
 * lives, in case it dies before removing it; an existing policy is left alone.
 */
function forbidServiceStarts(): () => void {
  if (existsSync(POLICY) && !readFileSync(POLICY, 'utf8').includes(MARK)) return () => {};
  const script = `#!/bin/sh\n${MARK}\nkill -0 ${process.pid} 2>/dev/null && exit 101\nexit 0\n`;
  writeFileSync(`${POLICY}.new`, script);
  chmodSync(`${POLICY}.new`, 0o755);
  renameSync(`${POLICY}.new`, POLICY);
  return () => rmSync(POLICY, { force: true });
}

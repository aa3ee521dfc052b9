import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The package, installed in a folder as a program that depends on it would have it. */
export interface InstalledPackage {
  tarball: string;
  /** The folder with `node_modules`. */
  folder: string;
  /** What `berth` runs. */
  main: string;
}

/** Packs the package, which builds it, and installs it in a new folder below this one, without development's packages. */
export async function installPackage(below: string): Promise<InstalledPackage> {
  await npm('pack', '--pack-destination', below);
  const name = readdirSync(below).find((file) => file.endsWith('.tgz')) ?? '';
  const tarball = join(below, name);
  const folder = join(below, 'installed');
  mkdirSync(folder);
  await npm(
    'install',
    '--omit=dev',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    '--prefix',
    folder,
    tarball,
  );
  return { tarball, folder, main: join(folder, 'node_modules/berth/dist/main.js') };
}

/** Node 22, the oldest that the suite runs on: the path of its program below this folder; undefined without a registry. */
export function installNode22(below: string): Promise<string | undefined> {
  return installProgram(below, 'node@22', 'node');
}

/** The path of this TypeScript's `tsc`, below this folder; undefined without a registry. */
export function installTypeScript(below: string, version: string): Promise<string | undefined> {
  return installProgram(below, `typescript@${version}`, 'tsc');
}

async function installProgram(below: string, spec: string, name: string): Promise<string | undefined> {
  const folder = join(below, spec);
  const program = join(folder, 'node_modules/.bin', name);
  if (existsSync(program)) return program;
  mkdirSync(folder);
  try {
    await npm('view', spec, 'version');
  } catch {
    return undefined;
  }
  await npm('install', '--no-audit', '--no-fund', '--prefix', folder, spec);
  return program;
}

/**
 * Jest, in a folder with the package as a program that depends on both has them: that folder; undefined without a
 * registry.
 */
export async function installJest(below: string, tarball: string): Promise<string | undefined> {
  const folder = join(below, 'jest');
  mkdirSync(folder);
  try {
    await npm('view', 'jest@30', 'version');
  } catch {
    return undefined;
  }
  await npm('install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder, tarball, 'jest@30');
  return folder;
}

async function npm(...args: string[]): Promise<void> {
  await promisify(execFile)('npm', ['--silent', ...args], { cwd: root });
}

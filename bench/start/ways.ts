import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackage } from '../../test/package/install.ts';

/** A way to run `berth`: the command line before its arguments. */
export interface Way {
  name: string;
  command: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** Milliseconds and MB. */
  aim: { startMs: number; peakMb?: number; helpMs?: number };
}

const BUILT_AIM = { startMs: 400, peakMb: 130, helpMs: 300 };
const root = fileURLToPath(new URL('../../', import.meta.url));
const mainFile = join(root, 'src/main.ts');
/** The folder in which `test/image/run.sh` keeps the image. */
const imageStorage = join(root, 'node_modules/.cache/berth-image');

/** Every available way, with its files in this folder. */
export async function waysToRun(folder: string): Promise<Way[]> {
  const { main } = await installPackage(folder);
  return [
    { name: 'checkout', command: [process.execPath, mainFile], aim: { startMs: 1_200 } },
    {
      name: 'checkout, compile cache',
      command: [process.execPath, mainFile],
      env: { NODE_COMPILE_CACHE: join(folder, 'compile-cache') },
      aim: { startMs: 1_200 },
    },
    { name: 'package', command: [process.execPath, main], aim: BUILT_AIM },
  ];
}

/** Mounts the image's root folder, if `test/image/run.sh` has built it and this process may mount it. */
export function mountImage(): { way: Way; unmount: () => void } | undefined {
  const flags = ['--root', join(imageStorage, 'images'), '--runroot', join(imageStorage, 'run')];
  const buildah = (...args: string[]): string =>
    execFileSync('buildah', [...flags, ...args], { encoding: 'utf8' }).trim();
  const isBuilt =
    process.getuid?.() === 0 &&
    existsSync(imageStorage) &&
    spawnSync('buildah', [...flags, 'images', '--quiet', 'berth:test']).status === 0;
  if (!isBuilt) return undefined;
  const container = buildah('from', '--pull-never', 'berth:test');
  const folder = buildah('mount', container);
  const { Entrypoint: entrypoint, WorkingDir: workingFolder } = JSON.parse(
    buildah('inspect', '--type', 'image', 'berth:test'),
  ).Docker.config;
  // `exec` replaces the shell, so that the measured process is the program.
  const script = `cd "${workingFolder}" && exec "$@"`;
  return {
    way: {
      name: 'image',
      command: ['chroot', folder, 'sh', '-c', script, 'sh', ...entrypoint],
      aim: BUILT_AIM,
    },
    unmount: () => void buildah('rm', container),
  };
}

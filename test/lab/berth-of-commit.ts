import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../documents/pages.ts';

const READ_AT_RUN_TIME = ['conformance', 'fixtures', 'openapi', 'package.json', 'schemas', 'src'];

/**
 * Puts Berth as it was at a commit into `folder`, with today's dependencies: what only that commit imports is a
 * devDependency. Returns the file that node runs.
 * @throws if this clone does not have the commit
 */
export function berthOfCommit(commit: string, folder: string): string {
  // The lab runs as root, who need not own the checkout.
  const git = ['-c', 'safe.directory=*', '-C', root];
  if (spawnSync('git', [...git, 'cat-file', '-e', `${commit}^{commit}`]).status !== 0)
    throw new Error(
      `this clone does not have the commit ${commit}: fetch the whole history (git fetch --unshallow)`,
    );
  const archive = join(folder, 'berth.tar');
  execFileSync('git', [...git, 'archive', '-o', archive, commit, ...READ_AT_RUN_TIME]);
  const into = join(folder, `berth-${commit}`);
  mkdirSync(into);
  execFileSync('tar', ['-xf', archive, '-C', into]);
  symlinkSync(join(root, 'node_modules'), join(into, 'node_modules'));
  return join(into, 'src/main.ts');
}

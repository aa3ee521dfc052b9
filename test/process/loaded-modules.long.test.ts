import { expect, it } from 'vitest';
import { sourceOfBerth } from '../support/processes/built-programs.ts';
import { runBerth } from '../support/processes/process.ts';

const recorder = new URL('../support/processes/print-modules.ts', import.meta.url).href;

/** The files of the repository that `berth` with these arguments loads. */
async function modulesOf(args: readonly string[]): Promise<string[]> {
  const env = { NODE_OPTIONS: `--import=${recorder}` };
  const { code, stderr } = await runBerth(args, { env, entry: sourceOfBerth });
  expect({ code, stderr: stderr.split('\n').slice(0, -2) }).toEqual({ code: 0, stderr: [] });
  return JSON.parse(stderr);
}

it.each([
  {
    args: '--help',
    needs: 'src/cli',
    leaves: [
      'conformance',
      'src/compose',
      'src/orchestrator',
      'src/marketplace',
      'src/store',
      'src/drivers',
      'src/http',
    ],
  },
  {
    args: 'conformance list',
    needs: 'conformance',
    leaves: ['src/orchestrator', 'src/contract', 'src/store'],
  },
  {
    args: 'keys --help',
    needs: 'src/store',
    leaves: ['conformance', 'src/http', 'src/orchestrator/http', 'src/store/marketplace'],
  },
  {
    args: 'marketplace --help',
    needs: 'src/marketplace',
    leaves: ['conformance', 'src/http', 'src/marketplace/http', 'src/orchestrator/http'],
  },
  {
    args: 'marketplace keys --help',
    needs: 'src/store/marketplace',
    // Not what sends mail. Commands about money and stock alerts queue some.
    leaves: [
      'conformance',
      'src/http',
      'src/marketplace/mail/dispatch.ts',
      'src/marketplace/mail/mailer.ts',
      'src/drivers',
    ],
  },
])('`berth $args` loads what it needs and not the servers', async ({ args, needs, leaves }) => {
  const modules = await modulesOf(args.split(' '));
  const isIn = (path: string, place: string): boolean => path === place || path.startsWith(`${place}/`);
  expect(modules.filter((path) => isIn(path, needs))).not.toEqual([]);
  expect(modules.filter((path) => leaves.some((place) => isIn(path, place)))).toEqual([]);
});

import { expect, it, vi } from 'vitest';
import { LedgerError } from '../resources/ledger-file.ts';
import { referenceParts, runCli, temporaryFolder } from './cli.fixture.ts';

let intentsThatFit = 0;
vi.mock(import('../resources/ledger-file.ts'), async (load) => {
  const actual = await load();
  return {
    ...actual,
    openLedgerFile: (folder, runId) => {
      const file = actual.openLedgerFile(folder, runId);
      return {
        ...file,
        append: (line) => {
          const isIntent = line.line === 'run' || (line.line === 'entry' && line.entry.state === 'intended');
          if (isIntent && intentsThatFit-- <= 0) throw new LedgerError('the disk is full: make room');
          file.append(line);
        },
      };
    },
  };
});

it.each([
  { what: 'the first line', fits: 0, bought: 0 },
  { what: 'the first purchase', fits: 1, bought: 0 },
  { what: 'the second purchase', fits: 2, bought: 1 },
])(
  'a ledger without room for $what is of the set-up, and what was made is destroyed',
  async ({ fits, bought }) => {
    intentsThatFit = fits;
    using folder = temporaryFolder();
    await using target = referenceParts();
    const { code, out, err } = await runCli([target.baseUrl, '--state-dir', folder.path], {
      parts: target.parts,
    });
    expect(code).toBe(3);
    expect(out + err).toContain('the disk is full: make room');
    expect(out + err).not.toContain('fault of the suite');
    expect(target.sent.filter((line) => /^POST \/v1\/(instances|volumes)$/.test(line))).toHaveLength(bought);
    expect(await target.listed()).toEqual([]);
  },
);

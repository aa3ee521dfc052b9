import { Command } from 'commander';
import { verifyLedger } from '../../marketplace/ledger/verify-ledger.ts';
import { printLine } from '../print.ts';
import { withMarketplaceDatabase, withMarketplaceStore } from './open-marketplace-store.ts';

/** `berth marketplace verify-ledger`: exit code 1 where the books are not right. */
export function verifyLedgerCommand(): Command {
  return withMarketplaceDatabase(new Command('verify-ledger'))
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: true }, command: Command) =>
      withMarketplaceStore(command, async ({ store, clock }) => {
        const { findings, counts } = await verifyLedger(store, clock.now());
        if (findings.length > 0) process.exitCode = 1;
        if (json) {
          printLine(JSON.stringify({ findings, counts }));
          return;
        }
        for (const { id, problem } of findings) printLine(`${id}: ${problem}`);
        const { teams, segments, slices, subjects } = counts;
        printLine(
          `${findings.length === 0 ? 'The books are right' : `${findings.length} findings`}: ${teams} teams, ${subjects} deployments and volumes, ${segments} segments, ${slices} slices.`,
        );
      }),
    );
}

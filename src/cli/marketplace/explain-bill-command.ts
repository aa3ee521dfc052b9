import { Command } from 'commander';
import { explainBill } from '../../marketplace/ledger/explain-bill.ts';
import { Fatal } from '../fatal.ts';
import { printLine } from '../print.ts';
import {
  type MarketplaceStoreDeps,
  withMarketplaceDatabase,
  withMarketplaceStore,
} from './open-marketplace-store.ts';

/** `berth marketplace explain-bill` */
export function explainBillCommand(): Command {
  return withMarketplaceDatabase(new Command('explain-bill').argument('<id>', 'a deployment or a volume'))
    .description('what was billed for a deployment or a volume, rate by rate')
    .action(async (id: string, _flags: object, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        const lines = await explainBill(deps.store.read, await findSubject(deps, id), deps.clock.now());
        for (const line of lines) printLine(line);
      }),
    );
}

async function findSubject({ store: { read } }: MarketplaceStoreDeps, id: string): Promise<string> {
  const subject =
    (await read.deployments.byId(id)) ?? (await read.volumes.byId(id)) ?? (await read.volumes.byVolumeId(id));
  if (subject === null) throw new Fatal(`There is no deployment or volume "${id}".`);
  return subject.id;
}

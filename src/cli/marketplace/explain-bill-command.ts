import { Command } from 'commander';
import { billToJson, explainBill, readBill } from '../../marketplace/ledger/explain-bill.ts';
import { Fatal } from '../fatal.ts';
import { printLine } from '../print.ts';
import { type JsonFlag, printJson, withJson } from '../print-records.ts';
import {
  type MarketplaceStoreDeps,
  withMarketplaceDatabase,
  withMarketplaceStore,
} from './open-marketplace-store.ts';

/** `berth marketplace explain-bill` */
export function explainBillCommand(): Command {
  return withJson(
    withMarketplaceDatabase(new Command('explain-bill').argument('<id>', 'a deployment or a volume')),
  ).action(async (id: string, { json }: JsonFlag, command: Command) =>
    withMarketplaceStore(command, async (deps) => {
      const bill = await readBill(deps.store.read, await findSubject(deps, id), deps.clock.now());
      if (json) printJson(billToJson(bill));
      else for (const line of explainBill(bill)) printLine(line);
    }),
  );
}

async function findSubject({ store: { read } }: MarketplaceStoreDeps, id: string): Promise<string> {
  const subject =
    (await read.deployments.byId(id)) ?? (await read.volumes.byId(id)) ?? (await read.volumes.byVolumeId(id));
  if (subject === null) throw new Fatal(`There is no deployment or volume "${id}".`);
  return subject.id;
}

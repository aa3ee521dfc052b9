import { Command } from 'commander';
import { orchestratorStores } from '../compose/stores/orchestrator.ts';
import { loadCatalog } from '../config/load.ts';
import { sellingPlatforms } from '../config/platforms.ts';
import { counted } from '../contract/counted.ts';
import { type Reloaded, reload, requestReload } from '../orchestrator/operate/actions/reload.ts';
import type { OperationDeps } from '../orchestrator/operate/operations.ts';
import { onTarget } from './context/target.ts';
import { actionOn, withDatabase } from './database.ts';
import { localActor } from './local-actor.ts';
import { loadFor } from './orchestrator-database.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

/** `berth reload`: refuses an invalid catalog before it asks the servers to reload. */
export function reloadCommand(): Command {
  const local = actionOn(orchestratorStores, loadFor, async (deps, flags: OutputFlag) => {
    const { store, clock, config } = deps;
    const { offers } = loadCatalog(config.catalog, sellingPlatforms(config));
    await requestReload({ store, clock }, localActor());
    printDone(
      flags,
      { catalog: config.catalog, offers: offers.size, requested: true },
      `${config.catalog} is in order, with ${counted(offers.size, 'offer')}. Every server reloads its own configuration within 10 seconds.`,
      'A server that refuses it keeps the old one and raises the alarm reload_refused: berth alarms ls',
    );
  });
  return onTarget<OperationDeps>(
    'orchestrator',
    withOutput(withDatabase(new Command('reload'))),
    local,
    async (target, flags) => {
      const reloaded = (await target.perform(reload, {})) as Reloaded;
      const { catalog, added, removed, changed, needs_restart: restart } = reloaded;
      printDone(
        flags as OutputFlag,
        reloaded,
        `The server has reloaded ${catalog}: ${added.length} added, ${removed.length} removed, ${changed.length} changed. The others on its database follow within 10 seconds.`,
        ...(restart.length === 0 ? [] : [`After a restart only: ${restart.join(', ')}.`]),
      );
    },
  );
}

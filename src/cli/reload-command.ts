import { Command } from 'commander';
import { loadCatalog } from '../config/load.ts';
import { sellingPlatforms } from '../config/platforms.ts';
import { counted } from '../contract/counted.ts';
import { requestReload } from '../orchestrator/operate/actions/reload.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

/** `berth reload`: refuses an invalid catalog before it asks the servers to reload. */
export function reloadCommand(): Command {
  return withOutput(
    onDatabase(new Command('reload'), async ({ store, clock, config }, flags: OutputFlag) => {
      const { offers } = loadCatalog(config.catalog, sellingPlatforms(config));
      await requestReload({ store, clock }, localActor());
      printDone(
        flags,
        { catalog: config.catalog, offers: offers.size, requested: true },
        `${config.catalog} is in order, with ${counted(offers.size, 'offer')}. Every server reloads its own configuration within 10 seconds.`,
        'A server that refuses it keeps the old one and raises the alarm reload_refused: berth alarms ls',
      );
    }),
  );
}

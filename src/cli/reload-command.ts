import { Command } from 'commander';
import { loadCatalog } from '../config/load.ts';
import { sellingPlatforms } from '../config/platforms.ts';
import { counted } from '../contract/counted.ts';
import { requestReload } from '../orchestrator/operate/actions/reload.ts';
import { printLine } from '../runtime/print.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { type JsonFlag, printJson, withJson } from './print-records.ts';

/** `berth reload`: what is sold and for how much, without a restart. What is wrong with it here is not asked of the servers. */
export function reloadCommand(): Command {
  return withJson(
    onDatabase(new Command('reload'), async ({ store, clock, config }, { json }: JsonFlag) => {
      const { offers } = loadCatalog(config.catalog, sellingPlatforms(config));
      await requestReload({ store, clock }, localActor());
      if (json) return printJson({ catalog: config.catalog, offers: offers.size, requested: true });
      printLine(
        `${config.catalog} is in order, with ${counted(offers.size, 'offer')}. Every server reads its own configuration anew within 10 seconds.`,
      );
      printLine(
        'One that refuses it goes on with the old one, and raises the alarm reload_refused: berth alarms ls',
      );
    }),
  );
}

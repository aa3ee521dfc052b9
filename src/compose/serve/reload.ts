import { loadCatalog } from '../../config/load.ts';
import { sellingPlatforms } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import { type Catalog, catalogOf } from '../../orchestrator/catalog/catalog.ts';
import type { Reloaded } from '../../orchestrator/operate/actions/reload.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Live } from '../../ports/live.ts';
import type { ConfiguredDriver } from '../drivers/driver-settings.ts';

interface Parts {
  /** The configuration at startup. */
  config: Config;
  /** Loads the current configuration. @throws {Fatal} */
  load: () => Config;
  catalog: Live<Catalog>;
  drivers: readonly Pick<ConfiguredDriver, 'definition' | 'options' | 'platform'>[];
}

/**
 * Returns the function that reloads. Offers and prices then follow the new catalog; the rest stays as at startup. The
 * function throws a {@link Fatal} with all problems, and then nothing has changed.
 */
export function reloadOf({ config, load, catalog, drivers }: Parts): () => Reloaded {
  return () => {
    const next = load();
    const needsRestart = changedKeys(config, next);
    const read = readCatalog(config, next, needsRestart);
    for (const { definition, options, platform } of drivers)
      definition.checkCatalog?.(options, catalogOf(read, platform));
    const before = catalog.value;
    const reloaded = { catalog: next.catalog, needs_restart: needsRestart, ...differences(before, read) };
    catalog.replace(read);
    return reloaded;
  };
}

/** Checks the new catalog against the running platforms: an added platform has no driver yet. */
function readCatalog(config: Config, next: Config, needsRestart: readonly string[]): Catalog {
  try {
    return loadCatalog(next.catalog, sellingPlatforms(config));
  } catch (error) {
    const isOfPlatforms = needsRestart.some((key) => key === 'platform' || key === 'platforms');
    if (!(error instanceof Fatal) || !isOfPlatforms) throw error;
    const hint = 'The platforms of the configuration have changed too: restart to use them.';
    throw new Fatal(`${error.message}\n${hint}`, { cause: error });
  }
}

/** The keys of the configuration that differ, except the name of the catalog's file. */
function changedKeys(before: Config, after: Config): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)] as (keyof Config)[]);
  keys.delete('catalog');
  return [...keys].filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key])).sort();
}

/** Compares two catalogs by the ids of offers and the tokens of regions. */
function differences(before: Catalog, after: Catalog): Pick<Reloaded, 'added' | 'removed' | 'changed'> {
  const [old, now] = [entriesOf(before), entriesOf(after)];
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !now.has(name)),
    changed: [...now].flatMap(([name, text]) => (old.has(name) && old.get(name) !== text ? [name] : [])),
  };
}

function entriesOf({ offers, regions }: Catalog): Map<string, string> {
  const entries = [
    ...[...offers].map(([id, offer]) => [`offer ${id}`, JSON.stringify(offer)] as const),
    ...[...regions].map(([token, region]) => [`region ${token}`, JSON.stringify(region)] as const),
  ];
  return new Map(entries);
}

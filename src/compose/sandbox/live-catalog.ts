import { loadCatalogFile } from '../../config/load.ts';
import { type Catalog, toCatalog } from '../../orchestrator/catalog/catalog.ts';
import type { CatalogFile } from '../../orchestrator/catalog/catalog-schema.ts';
import type { Reloaded } from '../../orchestrator/operate/actions/reload.ts';
import { liveOf } from '../../ports/live.ts';
import { differences } from '../serve/reload.ts';

interface Source {
  file: string;
  /** What the file holds now. */
  content: CatalogFile;
  capacity: 'unlimited' | 'catalog';
}

/** The catalog of a provider. It can be reloaded from its file. */
export function openCatalog({ file, content, capacity }: Source) {
  const toSold = (read: CatalogFile): Catalog =>
    capacity === 'catalog' ? toCatalog(read) : withoutLimits(toCatalog(read));
  const live = liveOf(toSold(content));
  return {
    catalog: live.value,
    /** Loads the file again. @throws {ConfigError} */
    reload(): Reloaded {
      const { regions, offers } = live.value;
      live.replace(toSold(loadCatalogFile(file)));
      return { catalog: file, ...differences({ regions, offers }, live.value), needs_restart: [] };
    },
  };
}

/** Units of an offer that no test uses up. */
const UNLIMITED_UNITS = 1_000_000_000;

/** The catalog with unlimited capacity. What is sold out in the catalog stays sold out. */
function withoutLimits({ regions, offers }: Catalog): Catalog {
  const each = <T>(all: ReadonlyMap<string, T>, change: (one: T) => T) =>
    new Map([...all].map(([id, one]) => [id, change(one)]));
  return {
    regions: each(regions, (region) => ({ ...region, storageGb: undefined })),
    offers: each(offers, (offer) => ({
      ...offer,
      placements: offer.placements.map(({ region, units }) => ({
        region,
        units: units === 0 ? 0 : UNLIMITED_UNITS,
      })),
    })),
  };
}

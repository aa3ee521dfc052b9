import { loadCatalogFile } from '../../config/load.ts';
import { type Catalog, toCatalog } from '../../orchestrator/catalog/catalog.ts';
import type { CatalogFile } from '../../orchestrator/catalog/catalog-schema.ts';
import type { Reloaded } from '../../orchestrator/operate/actions/reload.ts';
import { type Live, liveOf } from '../../ports/live.ts';
import { differences } from '../serve/reload.ts';

interface Source {
  file: string;
  content: CatalogFile;
  capacity: 'unlimited' | 'catalog';
}

/** The catalog of a provider. It can be reloaded from its file. */
export class LiveCatalog {
  readonly #source: Source;
  readonly #live: Live<Catalog>;

  /** `content`: what the file holds now. */
  constructor(source: Source) {
    this.#source = source;
    this.#live = liveOf(toSold(source.content, source));
  }

  get value(): Catalog {
    return this.#live.value;
  }

  /** Loads the file again. @throws {ConfigError} */
  reload(): Reloaded {
    const { file } = this.#source;
    const { regions, offers } = this.value;
    this.#live.replace(toSold(loadCatalogFile(file), this.#source));
    return { catalog: file, ...differences({ regions, offers }, this.value), needsRestart: [] };
  }
}

function toSold(file: CatalogFile, { capacity }: Source): Catalog {
  const catalog = toCatalog(file);
  return capacity === 'catalog' ? catalog : withoutLimits(catalog);
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

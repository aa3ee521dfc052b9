import { toPlainIssues } from '../../config/findings.ts';
import { loadCatalogFile } from '../../config/load.ts';
import { ApiError, invalidRequest } from '../../contract/errors.ts';
import { type Catalog, parseCatalogFile, toCatalog } from '../../orchestrator/catalog/catalog.ts';
import type { CatalogFile } from '../../orchestrator/catalog/catalog-schema.ts';
import type { Reloaded } from '../../orchestrator/operate/actions/reload.ts';
import { type Live, liveOf } from '../../ports/live.ts';
import type { MovedPrice } from '../../sandbox/operate/provider.ts';
import { differences } from '../serve/reload.ts';

/** The moved prices, by offer. */
export type MovedPrices = Readonly<Record<string, MovedPrice>>;

interface Source {
  file: string;
  capacity: 'unlimited' | 'catalog';
}

/** The catalog of a provider. Its prices can be moved, and it can be reloaded from its file. */
export class LiveCatalog {
  readonly #source: Source;
  #file: CatalogFile;
  #moved: MovedPrices = {};
  readonly #live: Live<Catalog>;

  /** `content`: what the file holds now. */
  constructor({ content, ...source }: Source & { content: CatalogFile }) {
    this.#source = source;
    this.#file = content;
    this.#live = liveOf(toSold(content, source));
  }

  get value(): Catalog {
    return this.#live.value;
  }

  /** The prices that differ from the file. */
  get moved(): MovedPrices {
    return this.#moved;
  }

  set moved(moved: MovedPrices) {
    this.#live.replace(toSold(withPrices(this.#file, moved), this.#source));
    this.#moved = moved;
  }

  /** Moves the prices of an offer. @throws {ApiError} if the catalog could not be loaded with them */
  move(offer: string, to: MovedPrice): void {
    if (!this.value.offers.has(offer))
      throw new ApiError(
        'not_found',
        `There is no offer ${offer}: there are ${[...this.value.offers.keys()].join(', ')}.`,
      );
    this.moved = { ...this.#moved, [offer]: { ...this.#moved[offer], ...to } };
  }

  /** Loads the file again. Moved prices end. @throws {ConfigError} */
  reload(): Reloaded {
    const { regions, offers } = this.value;
    this.#file = loadCatalogFile(this.#source.file);
    this.moved = {};
    const changes = differences({ regions, offers }, this.value);
    return { catalog: this.#source.file, ...changes, needsRestart: [] };
  }
}

function withPrices(file: CatalogFile, moved: MovedPrices): CatalogFile {
  const offers = file.offers.map((offer) => ({ ...offer, ...moved[offer.id] }));
  const parsed = parseCatalogFile({ ...file, offers });
  if ('file' in parsed) return parsed.file;
  const issues = toPlainIssues({ ...file, offers }, parsed.issues);
  throw invalidRequest(issues.map(({ path, message }) => ({ path: String(path.at(-1) ?? ''), message })));
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

import { type Placement, placements, type Wanted } from '../scenarios/placement.ts';
import { type JsonObject, stringField, stringsField } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { closestMatch } from '../text/wording.ts';
import { includes, type Level } from '../transcript/records.ts';
import { config, type Diagnosis, note, ok } from './diagnosis.ts';

const SUBJECT = 'Availability';
const SHOWN_CHARS = 100;

export interface Stock {
  /** From GET /configurations. */
  configurations: readonly JsonObject[];
  /** From GET /availability; undefined if the answer was not a list. */
  availability: readonly JsonObject[] | undefined;
}

/** Checks whether something can be bought, if the level of the run needs that. */
export function availabilityFor(level: Level, wanted: Wanted, stock: Stock): Diagnosis[] {
  const misspelt = [unknownOffer(wanted.offer, stock), unknownRegion(wanted.region, stock)].filter(
    (diagnosis) => diagnosis !== undefined,
  );
  if (misspelt.length > 0) return misspelt;
  if (!includes(level, 'lifecycle')) return [];
  if (stock.availability === undefined)
    return [note(SUBJECT, 'GET /availability does not answer with a list, which the run will judge')];
  const [cheapest] = placements(stock.availability, wanted);
  if (cheapest !== undefined) return [ok(SUBJECT, `${describe(cheapest)} is available`)];
  const which = [wanted.offer, wanted.region].filter((part) => part !== undefined).join(' in ');
  return [
    note(
      SUBJECT,
      `nothing is available${which === '' ? '' : ` of ${which}`}, so that all that needs an instance will be not tested and the outcome INCOMPLETE`,
      'free some capacity first, or ask for another --offer or --region',
    ),
  ];
}

function describe({ configurationId, region }: Placement): string {
  return `${printable(configurationId, SHOWN_CHARS)} in ${printable(region, SHOWN_CHARS)}`;
}

function unknownOffer(offer: string | undefined, { configurations }: Stock): Diagnosis | undefined {
  const ids = configurations.map((each) => stringField(each, 'id')).filter((id) => id !== undefined);
  if (offer === undefined || ids.length === 0 || ids.includes(offer)) return undefined;
  return config(
    SUBJECT,
    `--offer ${offer} is not among the offers of GET /configurations`,
    oneOf(offer, ids),
  );
}

function unknownRegion(region: string | undefined, { configurations }: Stock): Diagnosis | undefined {
  const regions = [...new Set(configurations.flatMap((each) => stringsField(each, 'regions')))];
  if (region === undefined || regions.length === 0 || regions.includes(region)) return undefined;
  return config(SUBJECT, `--region ${region} is not a region of any offer`, oneOf(region, regions));
}

const MOST_SHOWN = 8;

function oneOf(given: string, known: readonly string[]): string {
  const meant = closestMatch(given, known);
  if (meant !== undefined) return `did you mean ${printable(meant, SHOWN_CHARS)}?`;
  const shown = known.slice(0, MOST_SHOWN).map((each) => printable(each, SHOWN_CHARS));
  return `there are ${shown.join(', ')}${known.length > MOST_SHOWN ? ` and ${known.length - MOST_SHOWN} more` : ''}`;
}

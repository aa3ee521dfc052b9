import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach } from '../../evidence/finding.ts';
import { isWhole, type OfferRead, offerReads } from '../../evidence/offers.ts';
import { stringsField } from '../../text/json.ts';
import { listed, shortJson } from '../../text/wording.ts';
import type { Exchange } from '../../transcript/records.ts';

/** With region=R the list has what the whole lists before and after it have in R, and no offer that neither has there. */
export function judgeRegionByRegion(evidence: Evidence): Finding {
  const asked = evidence.steps('catalog/of-region');
  const reads = offerReads(evidence, 'availability');
  const whole = reads.filter((read) => isWhole(read) && read.exchange.step === 'catalog/availability');
  const neighbours = [
    whole.findLast(({ exchange }) => exchange.n < (asked[0]?.n ?? 0)),
    whole.find(({ exchange }) => exchange.n > (asked.at(-1)?.n ?? 0)),
  ].filter((read) => read !== undefined);
  const filtered = reads.filter(({ exchange }) => asked.includes(exchange));
  return judgeEach(
    neighbours.length < 2 ? [] : filtered,
    'lists of one region, each between two whole lists',
    ({ region = '', byId }) => {
      const inAll = idsIn(neighbours[0], region).filter((id) => idsIn(neighbours[1], region).includes(id));
      const inAny = new Set(neighbours.flatMap((read) => idsIn(read, region)));
      const faults = [
        ...inAll.filter((id) => !byId.has(id)).map((id) => `${shortJson(id)} is not listed`),
        ...[...byId.keys()].filter((id) => !inAny.has(id)).map((id) => `${shortJson(id)} is listed`),
      ];
      if (faults.length === 0) return undefined;
      return {
        expected: `with region=${shortJson(region)} what the whole list has there: ${listed(inAll.map((id) => shortJson(id)))}`,
        actual: listed(faults),
      };
    },
    ({ exchange }): Exchange => exchange,
  );
}

function idsIn(read: OfferRead | undefined, region: string): string[] {
  const offers = [...(read?.byId ?? [])];
  return offers.flatMap(([id, offer]) => (stringsField(offer, 'regions').includes(region) ? [id] : []));
}

import type { Evidence } from '../../evidence/evidence.ts';
import { acceptedDelete, type InstanceTimeline, isBefore } from '../../evidence/instances.ts';
import type { Place } from '../../scenarios/catalog/catalog.ts';
import { parseJson, stringField } from '../../text/json.ts';
import type { Exchange } from '../../transcript/records.ts';

/** The offer and the region of a create. */
export function placeOf({ request }: Exchange): Place {
  const body = parseJson(request.body);
  return {
    configurationId: stringField(body, 'configuration_id') ?? '',
    region: stringField(body, 'region') ?? '',
  };
}

/** The place of the race. Throws `MissingEvidence`. */
export function raced(evidence: Evidence): Place {
  return placeOf(evidence.step('race/create'));
}

/** The instances that the run itself held at that time, which may be why a create was refused. */
export function heldBefore({ instances }: Evidence, asked: Exchange): InstanceTimeline[] {
  return instances.filter((timeline) => {
    const end = acceptedDelete(timeline);
    const isMade = timeline.created !== undefined && isBefore(timeline.created, asked);
    return isMade && (end === undefined || !isBefore(end, asked));
  });
}

import { textField } from '../wire/json.ts';
import type { Evidence } from './evidence.ts';
import type { InstanceTimeline } from './instance-timeline.ts';

/** The InstanceType of the offer that an instance is of; undefined where no offer was read that says so. */
export function offerTypes(evidence: Evidence): (timeline: InstanceTimeline) => string | undefined {
  const types = new Map(
    evidence.objects.configurations.map(({ value }) => [
      textField(value, 'id'),
      textField(value, 'instance_type'),
    ]),
  );
  return ({ sightings }) =>
    types.get(textField(sightings.find(({ instance }) => instance)?.instance, 'configuration_id'));
}

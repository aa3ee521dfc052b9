import type { JsonObject } from '../../text/json.ts';
import { UNKNOWN_REGION } from '../catalog/regions.ts';
import { NO_SUCH_ID } from '../instances/refusal-cases.ts';

/** A create of a volume that is valid except for one defect. */
export interface VolumeRefusalCase {
  step: string;
  /** Completes the phrase "a create with …". */
  defect: string;
  body: (valid: JsonObject) => unknown;
}

const replacing =
  (field: string, value: unknown) =>
  (valid: JsonObject): unknown => ({ ...valid, [field]: value });

const missing: readonly VolumeRefusalCase[] = ['name', 'size_gb', 'region'].map((field) => ({
  step: `volumes/invalid/without-${field}`,
  defect: `no ${field}`,
  body: (valid) => Object.fromEntries(Object.entries(valid).filter(([name]) => name !== field)),
}));

export const VOLUME_REFUSAL_CASES: readonly VolumeRefusalCase[] = [
  {
    step: 'volumes/invalid/cut-off',
    defect: 'a body of JSON that is cut off',
    body: (valid) => JSON.stringify(valid).slice(0, -1),
  },
  ...missing,
  {
    step: 'volumes/invalid/size-text',
    defect: 'size_gb that is a text',
    body: replacing('size_gb', 'large'),
  },
  {
    step: 'volumes/invalid/size-negative',
    defect: 'a negative size_gb',
    body: replacing('size_gb', -10),
  },
  {
    step: 'volumes/invalid/unknown-region',
    defect: 'a region that is not among the locations',
    body: replacing('region', UNKNOWN_REGION),
  },
  {
    step: 'volumes/invalid/instance-ids-text',
    defect: 'instance_ids that is a text and no list',
    body: replacing('instance_ids', NO_SUCH_ID),
  },
];

/** Only used if the location lists its types. */
export const UNKNOWN_TYPE: VolumeRefusalCase = {
  step: 'volumes/invalid/unknown-type',
  defect: 'a type that is not among the location’s',
  body: replacing('type', 'berth-conformance-no-such-type'),
};

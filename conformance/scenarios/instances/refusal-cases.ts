import { type JsonObject, stringsField } from '../../text/json.ts';
import { UNKNOWN_REGION } from '../catalog/regions.ts';
import type { Placement } from '../placement.ts';
import type { Session } from '../session.ts';

/** An id that no provider issues. */
export const NO_SUCH_ID = 'berth-conformance-no-such-id';

/** A create that is valid except for one defect. */
export interface RefusalCase {
  /** The requirement that it tests. */
  of: string;
  step: string;
  /** The defect; completes the phrase "a create with …". */
  defect: string;
  /** The valid body with the defect. */
  body: (valid: Body) => unknown;
  /** What the offer must support, so that this is the only defect. */
  needs?: 'cloud-init' | 'images' | 'storage';
  /** Ignoring the defect is lawful. */
  mayBeAccepted?: true;
}

type Body = Readonly<Record<string, unknown>>;

const replacing =
  (field: string, value: unknown) =>
  (valid: Body): unknown => ({ ...valid, [field]: value });

const without =
  (field: string) =>
  (valid: Body): unknown =>
    Object.fromEntries(Object.entries(valid).filter(([name]) => name !== field));

const withKey =
  (line: string) =>
  (valid: Body): unknown => ({ ...valid, ssh_keys: [...stringsField(valid, 'ssh_keys').slice(0, 1), line] });

/** Truncates the body after the name, so that anything created from it can be found. */
function cutOff({ name, ...rest }: Body): string {
  const text = JSON.stringify({ name, ...rest });
  return text.slice(0, text.indexOf('"region"'));
}

const required: readonly RefusalCase[] = ['configuration_id', 'region', 'ssh_keys'].map((field) => ({
  of: field === 'ssh_keys' ? 'NEG-KEYS-001' : 'NEG-REQUIRED-001',
  step: `refusals/without-${field}`,
  defect: `no ${field}`,
  body: without(field),
}));

const keys: readonly RefusalCase[] = [
  {
    of: 'NEG-KEYS-001',
    step: 'refusals/no-keys',
    defect: 'ssh_keys []',
    body: replacing('ssh_keys', []),
  },
  {
    of: 'NEG-KEYS-002',
    step: 'refusals/key-of-words',
    defect: 'a second key that is not a key',
    body: withKey('this is not an OpenSSH public key'),
  },
  {
    of: 'NEG-KEYS-002',
    step: 'refusals/key-private',
    defect: 'a second key that begins as a private key does',
    body: withKey('-----BEGIN OPENSSH PRIVATE KEY-----'),
  },
  {
    of: 'NEG-KEYS-002',
    step: 'refusals/key-not-base64',
    defect: 'a second key, ssh-rsa, whose data is not base64',
    body: withKey('ssh-rsa AAAA*this*is*not*base64* berth-conformance'),
  },
  {
    of: 'NEG-KEYS-002',
    step: 'refusals/key-empty',
    defect: 'an empty text as its only key',
    body: replacing('ssh_keys', ['']),
  },
  {
    of: 'NEG-KEYS-002',
    step: 'refusals/key-number',
    defect: 'a number as its only key',
    body: replacing('ssh_keys', [42]),
  },
];

const types: readonly RefusalCase[] = [
  {
    of: 'NEG-TYPE-001',
    step: 'refusals/keys-text',
    defect: 'ssh_keys that is a text and no list',
    body: (valid) => ({ ...valid, ssh_keys: stringsField(valid, 'ssh_keys')[0] }),
  },
  {
    of: 'NEG-TYPE-001',
    step: 'refusals/name-number',
    defect: 'a name that is a number',
    body: replacing('name', 42),
  },
  {
    of: 'NEG-TYPE-002',
    step: 'refusals/root-disk-text',
    defect: 'root_disk_size_gb that is a text',
    body: replacing('root_disk_size_gb', 'large'),
    mayBeAccepted: true,
  },
  {
    of: 'NEG-TYPE-001',
    step: 'refusals/cloud-init-text',
    defect: 'cloud_init that is a text and no object',
    body: replacing('cloud_init', '#cloud-config'),
    needs: 'cloud-init',
  },
  {
    of: 'NEG-TYPE-002',
    step: 'refusals/volume-ids-text',
    defect: 'volume_ids that is a text and no list',
    body: replacing('volume_ids', NO_SUCH_ID),
    needs: 'storage',
    mayBeAccepted: true,
  },
];

const references: readonly RefusalCase[] = [
  {
    of: 'NEG-CLOUD-001',
    step: 'refusals/file-without-path',
    defect: 'a cloud_init.write_files item without path',
    body: replacing('cloud_init', { write_files: [{ content: 'berth-conformance' }] }),
    needs: 'cloud-init',
  },
  {
    of: 'NEG-CLOUD-001',
    step: 'refusals/file-without-content',
    defect: 'a cloud_init.write_files item without content',
    body: replacing('cloud_init', { write_files: [{ path: '/root/berth-conformance' }] }),
    needs: 'cloud-init',
  },
  {
    of: 'NEG-IMAGE-001',
    step: 'refusals/unknown-image',
    defect: 'an operating_system_image that is not one of the offer’s os_options',
    body: replacing('operating_system_image', 'berth-conformance-no-such-image'),
    needs: 'images',
  },
  {
    of: 'NEG-OFFER-001',
    step: 'refusals/unknown-offer',
    defect: 'a configuration_id that no offer has',
    body: replacing('configuration_id', NO_SUCH_ID),
  },
  {
    of: 'NEG-REGION-001',
    step: 'refusals/unknown-region',
    defect: 'a region that there is not',
    body: replacing('region', UNKNOWN_REGION),
  },
];

export const REFUSAL_CASES: readonly RefusalCase[] = [
  {
    of: 'NEG-JSON-001',
    step: 'refusals/cut-off',
    defect: 'a body of JSON that is cut off',
    body: cutOff,
  },
  ...required,
  ...keys,
  ...types,
  ...references,
];

/** An existing region where the offer is not sold. Undefined if it is sold everywhere. */
export function unsoldRegion({ configurations }: Session, { offer }: Placement): string | undefined {
  const listed = configurations.find((configuration) => configuration['id'] === offer['id']) ?? offer;
  const sold = new Set([...regionsOf(listed), ...regionsOf(offer)]);
  return configurations.flatMap(regionsOf).find((region) => !sold.has(region));
}

const regionsOf = (offer: JsonObject): string[] => stringsField(offer, 'regions');

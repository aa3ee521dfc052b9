import { inShort } from '../verdict/words.ts';
import { hasField, type JsonObject } from '../wire/json.ts';

/** What an offer is. What of it is sold now, where, and for how much may change at any time. */
const STATIC_FIELDS = [
  'name',
  'instance_type',
  'vcpus',
  'memory_gb',
  'storage_gb',
  'gpu_count',
  'gpu_type',
  'gpu_memory_gb',
  'supports_cloud_init',
];

/** The static fields in which two readings of an offer differ, in words. A field that one leaves out says nothing. */
export function staticDifferences(before: JsonObject, after: JsonObject): string[] {
  return STATIC_FIELDS.filter(
    (field) => hasField(before, field) && hasField(after, field) && before[field] !== after[field],
  ).map((field) => `${field} is ${inShort(after[field])} and was ${inShort(before[field])}`);
}

/** Two offers with one fingerprint are the same thing under two ids. */
export function fingerprint(offer: JsonObject): string {
  return JSON.stringify(STATIC_FIELDS.map((field) => offer[field] ?? null));
}

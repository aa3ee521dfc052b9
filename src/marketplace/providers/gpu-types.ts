import { parse } from 'yaml';
import { z } from 'zod';
import { formatPath } from '../../contract/errors.ts';

const textSchema = z.string().min(1).max(100);

/** The schema of `fixtures/gpu-types.yaml`. */
const gpuTypesSchema = z.record(
  z.string().regex(/^[A-Z0-9]+(_[A-Z0-9]+)*$/, 'expected upper-case words joined by "_", such as "H100_SXM"'),
  z.strictObject({
    base: textSchema,
    model: textSchema,
    /** The names that providers use. */
    names: z.array(textSchema).min(1),
    interconnect: z.strictObject({ type: textSchema, description: textSchema }).optional(),
  }),
);

/** A GPU as M: names it. */
export interface GpuType {
  gpuType: string;
  baseGpuType: string;
  gpuModel: string;
  displayName: string;
  interconnectType: string;
  interconnectDescription: string;
}

/** The type of offers without a GPU (M: "`CPU` for the CPU Node row"). */
export const CPU: GpuType = {
  gpuType: 'CPU',
  baseGpuType: 'CPU',
  gpuModel: '',
  displayName: 'CPU NODE',
  interconnectType: '',
  interconnectDescription: '',
};

const MAX_LENGTH = 63;

/** Maps providers' names of GPUs to GPU types. */
export class GpuTypes {
  readonly #byName: ReadonlyMap<string, GpuType>;

  constructor(byName: ReadonlyMap<string, GpuType>) {
    this.#byName = byName;
  }

  /** The GPU type of a name, or one derived from the name. Two spellings of a name give the same id. */
  named(name: string): GpuType {
    return this.#byName.get(toKey(name)) ?? derived(name);
  }
}

/** @throws {Error} with the position of each mistake, or with the two types that claim one name */
export function parseGpuTypes(text: string): GpuTypes {
  const result = gpuTypesSchema.safeParse(parse(text));
  if (!result.success) {
    const lines = result.error.issues.map(({ path, message }) => `${formatPath(path)}: ${message}`);
    throw new Error(`The GPU types cannot be read: ${lines.join('; ')}.`);
  }
  const byName = new Map<string, GpuType>();
  for (const [gpuType, { base, model, names, interconnect }] of Object.entries(result.data))
    for (const name of [gpuType, ...names]) {
      const other = byName.get(toKey(name));
      if (other !== undefined && other.gpuType !== gpuType)
        throw new Error(`The GPU types ${other.gpuType} and ${gpuType} both claim the name "${name}".`);
      byName.set(toKey(name), {
        gpuType,
        baseGpuType: base,
        gpuModel: model,
        displayName: model,
        interconnectType: interconnect?.type ?? '',
        interconnectDescription: interconnect?.description ?? '',
      });
    }
  return new GpuTypes(byName);
}

const VENDORS = /\b(NVIDIA|AMD|INTEL|GEFORCE|TESLA|QUADRO|INSTINCT|RADEON)\b/g;

function splitWords(name: string): string[] {
  const words = name.toUpperCase().replace(/_/g, ' ').replace(VENDORS, ' ');
  return words.split(/[^A-Z0-9]+/).filter((word) => word !== '');
}

function toKey(name: string): string {
  return splitWords(name).join('');
}

function derived(name: string): GpuType {
  const words = splitWords(name);
  const id = words.join('_').slice(0, MAX_LENGTH);
  // `CPU` is reserved for offers without a GPU.
  const gpuType = id === '' ? 'GPU' : id === CPU.gpuType ? 'GPU_CPU' : id;
  const model = gpuType === id ? words.join(' ').slice(0, MAX_LENGTH) : 'GPU';
  return {
    gpuType,
    baseGpuType: gpuType,
    gpuModel: model,
    displayName: model,
    interconnectType: '',
    interconnectDescription: '',
  };
}

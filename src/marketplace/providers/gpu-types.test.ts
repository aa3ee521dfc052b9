import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseGpuTypes } from './gpu-types.ts';
import { gpuTypes } from './offer.fixture.ts';

describe('named', () => {
  it.each([
    ['NVIDIA H100 SXM', 'H100_SXM', 'H100', 'H100 SXM', 'SXM5'],
    ['nvidia_h100_sxm5', 'H100_SXM', 'H100', 'H100 SXM', 'SXM5'],
    ['NVIDIA H100 80GB HBM3', 'H100_SXM', 'H100', 'H100 SXM', 'SXM5'],
    ['H100 PCIe', 'H100_PCIE', 'H100', 'H100 PCIe', 'PCIe'],
    ['H100_SXM', 'H100_SXM', 'H100', 'H100 SXM', 'SXM5'],
    ['NVIDIA GeForce RTX 4090', 'RTX_4090', 'RTX_4090', 'RTX 4090', ''],
    ['AMD Instinct MI300X', 'MI300X', 'MI300X', 'MI300X', ''],
    ['NVIDIA B200', 'B200_SXM', 'B200', 'B200 SXM', 'SXM6'],
  ])('knows "%s" as %s [gpu-names]', (name, gpuType, baseGpuType, displayName, interconnectType) => {
    expect(gpuTypes.named(name)).toMatchObject({
      gpuType,
      baseGpuType,
      displayName,
      gpuModel: displayName,
      interconnectType,
    });
  });

  it('derives an id from an unknown name, the same for each spelling', () => {
    const derived = gpuTypes.named('NVIDIA X-9000 Ti');
    expect(derived).toEqual({
      gpuType: 'X_9000_TI',
      baseGpuType: 'X_9000_TI',
      gpuModel: 'X 9000 TI',
      displayName: 'X 9000 TI',
      interconnectType: '',
      interconnectDescription: '',
    });
    expect(gpuTypes.named('nvidia x_9000 ti')).toEqual(derived);
  });

  it.each(['', '***', 'cpu', `${'x'.repeat(500)}`])('makes a GPU of "%s", and never the CPU row', (name) => {
    const { gpuType, displayName } = gpuTypes.named(name);
    expect(gpuType).toMatch(/^[A-Z0-9_]{3,63}$/);
    expect(gpuType).not.toBe('CPU');
    expect(displayName).not.toBe('');
  });
});

const fixtures = join(import.meta.dirname, '../../../fixtures');

it.each(globSync('catalogs/*.yaml', { cwd: fixtures }))('knows every GPU of %s', (file) => {
  const known = Object.keys(parse(readFileSync(join(fixtures, 'gpu-types.yaml'), 'utf8')));
  const { offers } = parse(readFileSync(join(fixtures, file), 'utf8')) as { offers: { gpu_type?: string }[] };
  const names = offers.flatMap((offer) => offer.gpu_type ?? []);
  expect(names.filter((name) => !known.includes(gpuTypes.named(name).gpuType))).toEqual([]);
});

describe('parseGpuTypes', () => {
  it.each([
    ['h100: { base: H100, model: H100, names: [H100] }', 'h100: '],
    ['H100: { base: H100, names: [H100] }', 'H100.model: '],
    ['A: { base: A, model: A, names: [X 1] }\nB: { base: B, model: B, names: [x-1] }', 'A and B both claim'],
  ])('refuses %j', (text, message) => {
    expect(() => parseGpuTypes(text)).toThrow(message);
  });
});

import { readFileSync } from 'node:fs';

/** The package has the files next to its chunks. */
const folder = new URL(import.meta.url.endsWith('.js') ? './console/' : './assets/', import.meta.url);

const TYPES = {
  'console.css': 'text/css; charset=utf-8',
  'console.js': 'text/javascript; charset=utf-8',
} as const;

export type AssetName = keyof typeof TYPES;

interface Asset {
  type: string;
  text: string;
}

const read = new Map<AssetName, Asset>();

/** Returns one of the files that every page loads. Each is read once. */
export function asset(name: AssetName): Asset {
  const known = read.get(name) ?? { type: TYPES[name], text: readFileSync(new URL(name, folder), 'utf8') };
  read.set(name, known);
  return known;
}

export function isAssetName(name: string): name is AssetName {
  return Object.hasOwn(TYPES, name);
}

import { InvalidArgumentError } from 'commander';

export interface NumberRange {
  /** In what it is given, e.g. `seconds`. */
  unit: string;
  min: number;
  max: number;
  isWhole?: boolean;
}

/** Reads a number of an option. A mistake says what would be one, with its unit. */
export function numberIn({ unit, min, max, isWhole = false }: NumberRange): (text: string) => number {
  return (text) => {
    const value = /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN;
    if (value >= min && value <= max && (!isWhole || Number.isInteger(value))) return value;
    throw new InvalidArgumentError(
      `Give ${unit}, as a ${isWhole ? 'whole ' : ''}number from ${min} to ${max}`,
    );
  };
}

/** `OFFER=UNITS`. */
export function raceOf(text: string): { offer: string; units: number } {
  const [, offer, digits = ''] = /^(.+)=(\d{1,3})$/.exec(text.trim()) ?? [];
  const units = Number(digits);
  if (offer !== undefined && units >= 1 && units <= 100) return { offer, units };
  throw new InvalidArgumentError(
    'Give OFFER=UNITS: the id of an offer, and how many units of it there are (1 to 100)',
  );
}

/** `HOST:PORT`; the port of SSH where there is none. */
export function hostAndPort(text: string): { host: string; port: number } {
  const [, bracketed, plain, digits = '22'] =
    /^(?:\[([^\]]+)\]|([^:\s]+))(?::(\d{1,5}))?$/.exec(text.trim()) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host !== undefined && port >= 1 && port <= 65_535) return { host, port };
  throw new InvalidArgumentError('Give HOST:PORT, such as 203.0.113.7:22');
}

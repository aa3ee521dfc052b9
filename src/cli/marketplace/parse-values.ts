import { Fatal } from '../fatal.ts';

const DOLLARS = /^(-?)(\d{1,9})(?:\.(\d{1,6}))?$/;

/** US dollars with at most six decimals, as micro-USD; exact. @throws {Fatal} */
export function parseUsd(what: string, text: string): number {
  const [, sign, whole = '', fraction = ''] = DOLLARS.exec(text) ?? [];
  if (sign === undefined)
    throw new Fatal(
      `${what} ${text}: give an amount in US dollars with at most six decimals, such as 25.50.`,
    );
  const microUsd = Number(whole) * 1_000_000 + Number(fraction.padEnd(6, '0'));
  return sign === '-' ? 0 - microUsd : microUsd;
}

/** @throws {Fatal} */
export function parseCount(what: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Fatal(`${what} ${text}: give a whole number.`);
  return Number(text);
}

/** @throws {Fatal} */
export function parseMinutes(what: string, text: string): number {
  if (!/^\d{1,6}(\.\d+)?$/.test(text)) throw new Fatal(`${what} ${text}: give a number of minutes.`);
  return Number(text);
}

/** @throws {Fatal} */
export function parseSwitch(what: string, text: string): boolean {
  if (text !== 'on' && text !== 'off') throw new Fatal(`${what} ${text}: give \`on\` or \`off\`.`);
  return text === 'on';
}

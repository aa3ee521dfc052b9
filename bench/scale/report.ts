import { printLine, printTable } from '../../src/runtime/print.ts';
import type { Row } from './run.ts';

/** Prints the table. */
export function printRows(rows: readonly Row[]): void {
  printTable(
    ['row', 'what', 'n', 'at n', 'at 10 n', 'grows by', 'may', 'aim at 10 n', ''],
    rows.map(({ id, what, store, n, of, figure, value, valueAtTen, growth, isTooMuch, isAimMet }) => [
      store === 'sqlite' ? id : `${id}, PostgreSQL`,
      `${what}: ${figure.what}`,
      `${toCount(n)} ${of}`,
      `${toShort(value)} ${figure.unit}`,
      `${toShort(valueAtTen)} ${figure.unit}`,
      `${growth.toFixed(2)}×`,
      figure.mayGrow === null ? '' : `${figure.mayGrow}×`,
      toAim(figure.aim, figure.unit),
      [isTooMuch ? 'GROWS TOO FAST' : '', isAimMet === false ? 'aim missed' : ''].filter(Boolean).join(', '),
    ]),
  );
}

export function printFailures(rows: readonly Row[]): void {
  for (const { id, store, figure, growth } of rows)
    printLine(
      `${id} on ${store}: ${figure.what} grows by ${growth.toFixed(2)} from n to 10 n, at most ${figure.mayGrow} is right`,
    );
}

function toAim(aim: Row['figure']['aim'], unit: string): string {
  if (aim === undefined) return '';
  return 'atMost' in aim ? `≤ ${aim.atMost} ${unit}` : `≥ ${aim.atLeast} ${unit}`;
}

function toCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** Only three digits are significant. */
function toShort(value: number): string {
  return Math.abs(value) >= 1_000 ? toCount(Math.round(value)) : String(Number(value.toPrecision(3)));
}

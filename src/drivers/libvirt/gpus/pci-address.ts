/** A PCI function in Linux notation: `0000:65:00.0`. */
export type PciAddress = string;

const PCI_ADDRESS = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$/;

export const isPciAddress = (text: string): boolean => PCI_ADDRESS.test(text);

/** Formats domain, bus, slot and function. @throws {RangeError} */
export function toPciAddress(numbers: readonly number[]): PciAddress {
  const [domain, bus, slot, fn] = numbers.map((part, index) =>
    part.toString(16).padStart([4, 2, 2, 1][index] ?? 0, '0'),
  );
  const address = `${domain}:${bus}:${slot}.${fn}`;
  if (!isPciAddress(address)) throw new RangeError(`${address} is not a PCI address`);
  return address;
}

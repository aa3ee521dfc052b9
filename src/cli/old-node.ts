const OLDEST = [24, 2] as const;

/** What is wrong with a Node of this version, such as "20.19.0", or null. An older one would end without a word. */
export function sentenceOfOldNode(version: string): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return null;
  return `Berth needs Node ${oldestMajor}.${oldestMinor} or later, and this is ${version}: put a newer one first in PATH.`;
}

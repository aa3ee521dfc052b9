/** Formats a size for display: `12.3 GB`, and below 1 GB `12 MB`. */
export function toByteSize(bytes: number): string {
  const mb = bytes / 1e6;
  return mb < 1_000 ? `${Math.floor(mb)} MB` : `${(mb / 1_000).toFixed(1)} GB`;
}

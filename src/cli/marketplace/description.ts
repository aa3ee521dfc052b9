/** What `berth --help` says of `berth marketplace`. */
export const marketplaceDescription =
  'serve the marketplace API on top of provider orchestrators, and set its users and teams';

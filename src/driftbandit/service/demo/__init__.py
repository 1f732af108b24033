"""`driftbandit demo`: a service fed by worlds that drift, sped up, with rewards that come late or never."""

"""What is on a picture: MobileNet V2 with its published weights."""
